import { TapeError } from "../model/errors.ts";
import type { ObjectDefinition, ObjectHandlers } from "./context.ts";
import { shown } from "./validate.ts";

/** An object without its types, as a registry stores it. */
export type AnyObject = Pick<ObjectDefinition<never, ObjectHandlers<never>>, "name" | "queue" | "workflows">;

/** The key of the value that holds the state. */
export const stateKey = (name: string, key: string): string => `object ${name}/${key}`;

/** `app.object`, `tape.object` and runners take a definition. */
export function assertObject(given: unknown): asserts given is AnyObject {
  const { workflows, queue } = (given ?? {}) as Partial<AnyObject>;
  if (typeof given === "object" && workflows instanceof Map && typeof queue === "object") return;
  const message = `an object is what object("name", { initial, handlers }) returns, not ${shown(given)}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "object" });
}
