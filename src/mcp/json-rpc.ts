/** Codes of JSON-RPC 2.0, and of MCP for a resource that does not exist. */
export const rpcCodes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  resourceNotFound: -32_002,
} as const;

export type RpcId = string | number;

/** An error that the protocol reports, as opposed to a tool that failed. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** What the peer sent. We make no requests of our own, so a response is of no use. */
export type RpcMessage =
  | { readonly kind: "request"; readonly id: RpcId; readonly method: string; readonly params: RpcParams }
  | { readonly kind: "notification"; readonly method: string; readonly params: RpcParams }
  | { readonly kind: "response" };

export type RpcParams = Readonly<Record<string, unknown>>;

export interface RpcResponse {
  readonly jsonrpc: "2.0";
  readonly id: RpcId | null;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface RpcNotification {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params: RpcParams;
}

/** Longer than any method of the protocol, and any id that a client needs. */
const maxNameChars = 256;

export function readMessage(json: unknown): RpcMessage {
  if (!isObject(json) || json.jsonrpc !== "2.0") throw invalidRequest('a message is an object with jsonrpc: "2.0"');
  const { id, method, params = {} } = json;
  if (method === undefined && ("result" in json || "error" in json)) return { kind: "response" };
  if (typeof method !== "string" || method.length > maxNameChars) throw invalidRequest("method must be a short string");
  if (!isObject(params)) throw invalidRequest("params must be an object");
  if (!Object.hasOwn(json, "id")) return { kind: "notification", method, params };
  if (!isId(id)) throw invalidRequest("id must be a short string or an integer");
  return { kind: "request", id, method, params };
}

/** The id of a message that cannot be answered otherwise. */
export function idOf(json: unknown): RpcId | null {
  return isObject(json) && isId(json.id) ? json.id : null;
}

export const resultMessage = (id: RpcId, result: unknown): RpcResponse => ({ jsonrpc: "2.0", id, result });

export function errorMessage(id: RpcId | null, { code, message, data }: RpcError): RpcResponse {
  return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
}

export const notification = (method: string, params: RpcParams): RpcNotification => ({
  jsonrpc: "2.0",
  method,
  params,
});

export function isObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function isId(id: unknown): id is RpcId {
  return Number.isSafeInteger(id) || (typeof id === "string" && id.length <= maxNameChars);
}

/** Its data has the code that Tape's other calls give for bad input. */
export const invalidRequest = (message: string): RpcError =>
  new RpcError(rpcCodes.invalidRequest, message, { code: "TAPE_BAD_INPUT" });
