// Server-sent events of one response, as they come: {name, data}.

export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        return;
      }
      const pieces = (held + value).split("\n\n");
      held = pieces.pop();
      for (const piece of pieces) {
        const event = read(piece);
        if (event) {
          yield event;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const read = (piece) => {
  let name = "message";
  let data = "";
  for (const line of piece.split("\n")) {
    if (line.startsWith("event: ")) {
      name = line.slice("event: ".length);
    } else if (line.startsWith("data: ")) {
      data += line.slice("data: ".length);
    }
  }
  return data ? { name, data: JSON.parse(data) } : null;
};
