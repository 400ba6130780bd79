// Sends only the required fields of a request of each schema, in the types that openapi-typescript generates.

import type { paths as Api } from "./api.js";
import type { paths as Dify } from "./dify.js";
import type { paths as V1 } from "./v1.js";
import type { paths as V2 } from "./v2.js";

declare const process: { env: Record<string, string> };

type Json<Described> = Described extends { content: { "application/json": infer Body } } ? Body : never;
type Sent<Operation> = Operation extends { requestBody: infer Body } ? Json<Body> : never;
type Received<Operation> = Operation extends { responses: { 200: infer Body } } ? Json<Body> : never;

async function post<Operation>(path: string, body: Sent<Operation>): Promise<Received<Operation>> {
  const response = await fetch(process.env.CORECUBE_URL + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.CORECUBE_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

const question = "How many days of annual leave do I get?";

const found = await post<Api["/api/v1/search"]["post"]>("/api/v1/search", { query: question });
console.log("/api", found.hits[0]?.title);

const messages = [{ role: "user", content: question }];
const chat = await post<V1["/v1/chat/completions"]["post"]>("/v1/chat/completions", { model: "corecube", messages });
console.log("/v1", chat.choices[0]?.message.annotations[0]?.url_citation.title);

const response = await post<V1["/v1/responses"]["post"]>("/v1/responses", { model: "corecube", input: question });
console.log("/v1", response.status);

const documents = ["Visitors wear a badge.", "Annual leave is 27 days."];
const ranked = await post<V2["/v2/rerank"]["post"]>("/v2/rerank", { query: question, documents });
console.log("/v2", documents[ranked.results[0]?.index ?? 0]);

const knowledge = { knowledge_id: "all", query: question };
const retrieved = await post<Dify["/api/dify/retrieval"]["post"]>("/api/dify/retrieval", knowledge);
console.log("/api/dify", retrieved.records[0]?.title);
