import type { WireRequest } from "../protocol/transport.ts";
import { toWire } from "../protocol/values.ts";
import { type BodyDeps, parsed, textOf } from "./body.ts";

/** Headers by which receivers check a sender, whatever the sender calls them. None of them is a credential for us. */
const signedHeader = /^(content-type|date|user-agent)$|signature|hmac|webhook|event|delivery|timestamp/;
const secretHeader = /^(authorization|proxy-authorization|cookie)$/;
const maxHeaders = 64;
const maxHeaderChars = 8_192;

/** What another system sends: its text, the headers that belong to it and, where the text is JSON, its value. */
export async function foreignBody(
  headers: WireRequest["headers"],
  sent: Uint8Array | undefined,
  deps: BodyDeps,
): Promise<unknown> {
  const body = sent === undefined || sent.length === 0 ? "" : await textOf(headers, sent, deps);
  const kept = Object.entries(headers)
    .filter(([name, value]) => signedHeader.test(name) && !secretHeader.test(name) && value.length <= maxHeaderChars)
    .slice(0, maxHeaders);
  return { ...jsonIn(body, deps), raw: { body, headers: kept.map(([name, value]) => ({ name, value })) } };
}

function jsonIn(body: string, deps: BodyDeps): { readonly value?: unknown } {
  try {
    return { value: toWire(parsed(body, deps)) }; // as it stands: nothing in it is an envelope of ours
  } catch {
    return {}; // a gate that takes the text does not need it
  }
}
