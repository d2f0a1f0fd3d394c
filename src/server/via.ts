import type { Credential } from "../model/records.ts";
import { channelHeader, type WireRequest } from "../protocol/transport.ts";
import type { Caller } from "./handler-types.ts";

const requestText = /^[\x21-\x7e]{1,128}$/;

/** The caller as the audit log records it. */
export function viaOf({ token, name, role }: Caller, { from, headers }: WireRequest): Credential {
  const request = headers["x-request-id"];
  return {
    ...(token !== undefined && { token }),
    ...{ name, role },
    ...(from !== undefined && { address: from }),
    ...(request !== undefined && requestText.test(request) && { request }),
    ...(headers[channelHeader] === "mcp" && { channel: "mcp" as const }),
  };
}
