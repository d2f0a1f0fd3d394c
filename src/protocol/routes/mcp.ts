import { z } from "zod";
import { group } from "../route.ts";

/** The Model Context Protocol: messages of JSON-RPC 2.0. They are read by src/mcp, which bounds everything in them. */
export const mcp = group({
  mcp: {
    method: "POST",
    path: "/mcp",
    role: "reader",
    repeat: "same",
    summary:
      "The Model Context Protocol (streamable HTTP without sessions): tools for models, by the role of the token. " +
      "Each tool makes calls of this API with the caller's credential",
    size: "payload",
    body: z.unknown().meta({ description: "a message of JSON-RPC 2.0, or with version 2025-03-26 a batch of them" }),
    answer: z.unknown(),
    raw: true,
  },
});
