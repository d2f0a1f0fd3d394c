import { describe, expect, it } from "vitest";
import { routes } from "../../src/protocol/contract.ts";
import { openApi } from "../../src/protocol/openapi.ts";

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;

/** The rules of OpenAPI 3.1 that a generator can break, in words; nothing: it is fine. */
function lint(document: Json): string[] {
  const faults: string[] = [];
  if (!/^3\.1\.\d+$/.test(String(document.openapi))) faults.push("openapi is no version 3.1");
  const info = document.info as Json;
  if (typeof info?.title !== "string" || typeof info.version !== "string") faults.push("info needs title and version");
  const ids = new Set<unknown>();
  for (const [path, item] of Object.entries(document.paths as Record<string, Json>)) {
    if (!path.startsWith("/")) faults.push(`${path} does not begin with /`);
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    for (const [method, operation] of Object.entries(item) as [string, Json][]) {
      const at = `${method} ${path}`;
      if (!["get", "put", "post", "delete"].includes(method)) faults.push(`${at}: no such method`);
      if (ids.has(operation.operationId))
        faults.push(`${at}: operationId ${String(operation.operationId)} is there twice`);
      ids.add(operation.operationId);
      const parameters = (operation.parameters ?? []) as Json[];
      const inPath = parameters.filter((one) => one.in === "path");
      if (
        inPath
          .map(({ name }) => String(name))
          .toSorted()
          .join() !== names.toSorted().join()
      ) {
        faults.push(`${at}: path parameters are not declared`);
      }
      if (inPath.some(({ required }) => required !== true)) faults.push(`${at}: a path parameter must be required`);
      if (parameters.some((one) => !isObject(one.schema))) faults.push(`${at}: a parameter has no schema`);
      const keys = parameters.map((one) => `${String(one.in)} ${String(one.name)}`);
      if (new Set(keys).size !== keys.length) faults.push(`${at}: a parameter is there twice`);
      if (method === "get" && operation.requestBody !== undefined) faults.push(`${at}: a GET has no body`);
      const responses = operation.responses as Record<string, Json>;
      if (!JSON.stringify(responses.default ?? {}).includes("Problem")) faults.push(`${at}: no problem answer`);
      if (!isObject(responses["200"]) || typeof responses["200"].description !== "string") {
        faults.push(`${at}: no answer, or one without a description`);
      }
      for (const requirement of (operation.security ?? document.security) as Json[]) {
        for (const scheme of Object.keys(requirement)) {
          if (!isObject(resolve(document, `#/components/securitySchemes/${scheme}`)))
            faults.push(`${at}: no ${scheme}`);
        }
      }
    }
  }
  walk(document, (node) => {
    if (typeof node.$ref === "string" && resolve(document, node.$ref) === undefined)
      faults.push(`${node.$ref} leads nowhere`);
    if (node.type === "array" && node.items === undefined && node.prefixItems === undefined)
      faults.push("an array without items");
    if (Array.isArray(node.required) && isObject(node.properties)) {
      for (const name of node.required)
        if (!Object.hasOwn(node.properties, String(name))) faults.push(`${String(name)} is required and not there`);
    }
  });
  return faults;
}

function walk(node: unknown, visit: (node: Json) => void): void {
  if (!isObject(node)) return;
  visit(node);
  for (const child of Object.values(node)) walk(child, visit);
}

function resolve(document: Json, ref: string): unknown {
  return ref
    .replace(/^#\//, "")
    .split("/")
    .reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), document);
}

const document = JSON.parse(JSON.stringify(openApi("1.2.3"))) as Json;
const operations = Object.entries(document.paths as Record<string, Json>).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, ...(operation as Json) })),
) as (Json & { path: string; method: string })[];

describe("/openapi.json", () => {
  it("lints clean", () => {
    expect(lint(document)).toEqual([]);
  });

  it("has every route of the contract, and no other", () => {
    const inContract = routes.map(({ name, method, path }) => `${name} ${method.toLowerCase()} ${path}`);
    const described = operations.map(({ operationId, method, path }) => `${String(operationId)} ${method} ${path}`);
    expect(described.toSorted()).toEqual(inContract.toSorted());
  });

  it("describes the wire format, not the types of the program", () => {
    const append = operations.find(({ operationId }) => operationId === "store.append")!;
    expect(JSON.stringify(append.requestBody)).toContain('"token":{"type":"string"');
    const list = operations.find(({ operationId }) => operationId === "runs.list")!;
    expect(list.parameters).toContainEqual(expect.objectContaining({ name: "limit", in: "query", required: false }));
    const claim = operations.find(({ operationId }) => operationId === "businessKeys.get")!;
    expect(claim.parameters).toContainEqual(expect.objectContaining({ name: "scope", required: true }));
  });

  it("forbids unknown fields, as the server does", () => {
    const start = operations.find(({ operationId }) => operationId === "runs.start")!;
    expect(JSON.stringify(start.requestBody)).toContain('"additionalProperties":false');
  });

  it("is linted by a linter that finds faults", () => {
    const broken = structuredClone(document) as { paths: Record<string, Record<string, Record<string, unknown>>> };
    const get = broken.paths["/v1/runs/{id}"]!.get!;
    get.parameters = [];
    get.operationId = "runs.list";
    get.responses = { 200: { $ref: "#/components/nowhere" } };
    expect(lint(broken as never).toSorted()).toEqual(
      [
        "#/components/nowhere leads nowhere",
        "get /v1/runs/{id}: no answer, or one without a description",
        "get /v1/runs/{id}: no problem answer",
        "get /v1/runs/{id}: operationId runs.list is there twice",
        "get /v1/runs/{id}: path parameters are not declared",
      ].toSorted(),
    );
  });
});
