"""The files for containers, Kubernetes and systemd: they name what exists and agree with each other."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from corecube.run import Task, _programs
from tests.deploy.proxies import DEPLOY

ROOT = DEPLOY.parent
KUBERNETES = DEPLOY / "kubernetes"
#: Variables of programs, not of CoreCube.
OTHERS = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "REMAP_SIGTERM", "POD_IP"}
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
OBJECTS = [
    it for path in sorted(KUBERNETES.glob("*.yaml")) for it in yaml.safe_load_all(path.read_text()) if "metadata" in it
]
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
PODS = {it["metadata"]["name"]: it["spec"]["template"] for it in OBJECTS if it["kind"] in {"Deployment", "Job"}}
UNITS = {path.stem: path.read_text() for path in (DEPLOY / "systemd").glob("*.service")}
COMMON = (DEPLOY / "systemd" / "corecube-.service.d" / "common.conf").read_text()


def of_kind(kind):
    return [it for it in OBJECTS if it["kind"] == kind]


def containers():
    return [(name, it) for name, pod in PODS.items() for it in pod["spec"]["containers"]]


def variables():
    """Yield the names of the variables that CoreCube gets anywhere."""
    yield from re.findall(r"\b([A-Z_]+)=\S", CONTAINERFILE.partition("ENV ")[2].partition("\nUSER")[0])
    yield from COMPOSE["x-corecube"]["environment"]
    (literals,) = (it["literals"] for it in KUSTOMIZATION["configMapGenerator"])
    yield from (it.partition("=")[0] for it in literals)
    yield from (variable["name"] for _, it in containers() for variable in it.get("env", ()))
    yield from re.findall(r"\b([A-Z_]+)=", COMMON.partition("[Service]")[2])


def test_every_variable_is_a_setting():
    documented = (ROOT / "docs" / "configuration.md").read_text()
    named = {name.removesuffix("_FILE") for name in variables()} - OTHERS
    assert {"DATABASE_URL", "SECRET_KEY", "CORECUBE_VAR_DIR", "CORECUBE_LOG_FORMAT", "CORECUBE_BM25"} <= named
    assert [name for name in sorted(named) if f"`{name}`" not in documented] == []


def commands():
    """Yield every command of a web server or worker, by its file."""
    yield "Containerfile", json.loads(re.search(r"^CMD (\[.+\])", CONTAINERFILE, re.MULTILINE)[1])
    yield "compose worker", COMPOSE["services"]["worker"]["command"]
    for name, container in containers():
        if container["name"] == "worker":
            yield name, container["args"]
    for name, text in UNITS.items():
        command = shlex.split(re.search(r"^ExecStart=(.+)$", text, re.MULTILINE)[1])
        if "-m" in command:
            yield name, command[command.index("-m") + 1 :]


@pytest.mark.parametrize(("place", "command"), list(commands()), ids=lambda it: it if isinstance(it, str) else "")
def test_programs_run_with_the_options_of_manage_py_start(place, command):
    task = Task(folder="", logs="", host="", port=0, data_dir="", start_lock=0, users_lock=None)
    ours = {it.command[2]: set(it.command[3:]) for it in _programs(task)}[command[0]]
    assert place
    place_options = ("--host", "--port", "--timeout-graceful-shutdown")
    assert {it for it in command[1:] if not it.startswith(place_options)} == {
        it for it in ours if not it.startswith(place_options)
    }


def test_the_image_holds_what_the_programs_need_and_nothing_else():
    copied = re.findall(r"^COPY (\w[\w.]*)", CONTAINERFILE, re.MULTILINE)
    let_in = re.findall(r"^!(.+)$", (DEPLOY / "Containerfile.dockerignore").read_text(), re.MULTILINE)
    assert sorted(copied) == sorted(let_in)
    assert all((ROOT / it).exists() for it in copied)


def test_compose_names_only_what_it_declares():
    services = COMPOSE["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= services.keys(), name
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys(), name
        mounted = {it.partition(":")[0] for it in service.get("volumes", ())}
        assert {it for it in mounted if not it.startswith(".")} <= COMPOSE["volumes"].keys(), name
        assert all((DEPLOY / "compose" / it).exists() for it in mounted if it.startswith(".")), name
    files = {f"/run/secrets/{name}" for name in COMPOSE["secrets"]}
    given = [*COMPOSE["x-corecube"]["environment"].items(), *services["database"]["environment"].items()]
    assert {value for name, value in given if name.endswith("_FILE")} == files


def test_compose_trusts_its_proxy_which_finds_the_web_server():
    trusted = COMPOSE["x-corecube"]["environment"]["CORECUBE_TRUSTED_PROXIES"]
    proxy = COMPOSE["services"]["proxy"]
    assert proxy["networks"]["default"]["ipv4_address"] == trusted
    (port,) = re.findall(r"^EXPOSE (\d+)", CONTAINERFILE, re.MULTILINE)
    assert proxy["environment"]["CORECUBE_UPSTREAM"] == f"web:{port}"


@pytest.mark.parametrize("found", OBJECTS, ids=lambda it: f"{it['kind']} {it['metadata']['name']}")
@pytest.mark.parametrize("version", ["1.27", "1.34"])
def test_an_object_is_valid(found, version):
    kubernetes_validate.validate(found, version, strict=True)


def test_kustomize_has_every_file():
    names = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == names
    (labels,) = KUSTOMIZATION["labels"]
    (all_pods,) = (it for it in of_kind("NetworkPolicy") if it["metadata"]["name"] == "corecube")
    assert labels["includeTemplates"]
    assert all_pods["spec"]["podSelector"]["matchLabels"] == labels["pairs"]


def test_references_resolve():
    config_maps = {it["name"] for it in KUSTOMIZATION["configMapGenerator"]}
    images = {it["name"] for it in KUSTOMIZATION["images"]}
    claims = {it["metadata"]["name"] for it in of_kind("PersistentVolumeClaim")}
    for name, pod in PODS.items():
        volumes = {it["name"]: it for it in pod["spec"]["volumes"]}
        used = {it["persistentVolumeClaim"]["claimName"] for it in volumes.values() if "persistentVolumeClaim" in it}
        assert used <= claims, name
        for container in pod["spec"]["containers"]:
            assert {it["name"] for it in container["volumeMounts"]} == volumes.keys(), name
            assert container["image"] in images
            sources = [source for it in container["envFrom"] for source in it.items()]
            assert sources == [("configMapRef", {"name": "corecube"}), ("secretRef", {"name": "corecube"})]
    assert config_maps == {"corecube"}


def test_selectors_and_ports_match_the_pods():
    labels = {name: pod["metadata"]["labels"] for name, pod in PODS.items()}
    for deployment in of_kind("Deployment"):
        name = deployment["metadata"]["name"]
        assert deployment["spec"]["selector"]["matchLabels"] == labels[name]
    (service,), (budget,) = of_kind("Service"), of_kind("PodDisruptionBudget")
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels["corecube-web"]
    (scaler,), (ingress,) = of_kind("HorizontalPodAutoscaler"), of_kind("Ingress")
    assert scaler["spec"]["scaleTargetRef"]["name"] == "corecube-web"
    (web,) = (it for name, it in containers() if it["name"] == "web")
    ports = {it["name"]: it["containerPort"] for it in web["ports"]}
    assert str(ports["http"]) in re.findall(r"^EXPOSE (\d+)", CONTAINERFILE, re.MULTILINE)
    assert [it["targetPort"] for it in service["spec"]["ports"]] == ["http"]
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"]["name"] == service["metadata"]["name"]


@pytest.mark.django_db
def test_pods_are_added_by_a_metric_that_is_exported():
    from retrieval.operations.metrics import REGISTRY

    (scaler,) = of_kind("HorizontalPodAutoscaler")
    (metric,) = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] in {it.name for it in REGISTRY.collect()}


def test_pods_have_no_rights_and_run_as_the_user_of_the_image():
    user = int(re.search(r"^USER (\d+):", CONTAINERFILE, re.MULTILINE)[1])
    for name, pod in PODS.items():
        assert pod["spec"]["securityContext"]["runAsUser"] == user, name
        for it in pod["spec"]["containers"]:
            wanted = {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert it["securityContext"] == wanted, name


def test_the_ingress_takes_what_nginx_takes():
    (ingress,) = of_kind("Ingress")
    nginx = (DEPLOY / "nginx" / "corecube.conf").read_text()
    notes = {name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert f"client_max_body_size {notes['proxy-body-size']};" in nginx
    assert f"proxy_read_timeout {notes['proxy-read-timeout']}s;" in nginx


def test_systemd_accepts_the_units(tmp_path):
    program = shutil.which("systemd-analyze") or pytest.skip("systemd is not installed")
    shutil.copytree(DEPLOY / "systemd", tmp_path, dirs_exist_ok=True)
    for path in (it for it in tmp_path.rglob("*") if it.is_file()):
        path.write_text(path.read_text().replace("/opt/corecube", str(ROOT)))
    units = sorted(map(str, tmp_path.glob("*.service")))
    environment = {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    command = [program, "verify", "--man=no", *units]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    shown = subprocess.run(
        [program, "security", "--offline=yes", "--threshold=25", *units],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    # Exposure below 2.5 of 10, so the common part applies to each unit.
    assert shown.returncode == 0, shown.stdout
    assert Path(units[0]).name == "corecube-prepare.service"
