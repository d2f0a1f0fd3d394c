import { z } from "zod";
import { routes } from "./contract.ts";
import { problemSchema, problemType } from "./problem.ts";
import type { Route } from "./route.ts";
import { jsonType, linesType } from "./transport.ts";

type Json = Record<string, unknown>;

/** The contract as OpenAPI 3.1, with the JSON of the wire. Everything is generated from the routes. */
export function openApi(version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = operationOf(route);
    paths[route.path] = path;
  }
  return {
    openapi: "3.1.0",
    info: { title: "durable-tape", version, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "id.secret, made with tokens.create" },
      },
      schemas: { Problem: schemaOf(problemSchema, "output") },
      responses: {
        Problem: {
          description: "The call was refused: code names the reason, next the action to take",
          content: { [problemType]: { schema: { $ref: "#/components/schemas/Problem" } } },
        },
      },
    },
  };
}

function operationOf(route: Route & { readonly name: string }): Json {
  const { name, summary, role, repeat, params, query, body, answer, stream, type, errors = [], manual } = route;
  const sentences = [
    role === "open" ? "Requires no credential." : `Requires the role ${role}.`,
    repeat === "key" ? "With an Idempotency-Key a repeated call returns the first response." : undefined,
    manual ? "The audit log records the operator and the reason." : undefined,
    stream ? "One JSON document per line; an empty line is a heartbeat." : undefined,
    errors.length > 0 ? `Possible errors: ${errors.join(", ")}.` : undefined,
  ];
  const parameters = [
    ...parametersOf("path", params),
    ...parametersOf("query", query),
    ...(repeat === "key"
      ? [{ name: "Idempotency-Key", in: "header", required: false, schema: { type: "string", maxLength: 255 } }]
      : []),
  ];
  const media = type ?? (stream ? linesType : jsonType);
  return {
    operationId: name,
    summary,
    description: sentences.filter((sentence) => sentence !== undefined).join(" "),
    tags: [name.split(".")[0]],
    ...(role === "open" ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: contentOf(route, schemaOf(body, "input")) } }),
    responses: {
      200: { description: "Done", content: { [media]: { schema: schemaOf(answer, "input") } } },
      ...(name === "readyz"
        ? { 503: { description: "Not ready", content: { [media]: { schema: schemaOf(answer, "input") } } } }
        : {}),
      default: { $ref: "#/components/responses/Problem" },
    },
  };
}

/** Another system sends whatever body it has. */
const contentOf = ({ foreign }: Route, schema: Json): Json =>
  foreign === true ? { [jsonType]: { schema: {} }, "*/*": { schema: { type: "string" } } } : { [jsonType]: { schema } };

function parametersOf(place: "path" | "query", schema: z.ZodObject | undefined): Json[] {
  if (schema === undefined) return [];
  return Object.entries(schema.shape).map(([name, field]) => ({
    ...{ name, in: place },
    required: place === "path" || !z.safeDecode(z.object({ [name]: field as z.ZodType }), {}).success,
    schema: schemaOf(field as z.ZodType, "input"),
  }));
}

/** The wire form of a codec is its input. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  return json;
}
