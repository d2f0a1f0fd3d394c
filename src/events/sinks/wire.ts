import type { TapeEvent } from "../event.ts";

/** The journal and the number of the record in it; an inbox counts for itself: `17i`. */
export function placeOf({ id }: TapeEvent): { readonly journal: string; readonly seq: string } {
  const [journal = "", seq = ""] = id.split(":");
  return { journal, seq };
}

/** The context attributes of CloudEvents as text, for messages that carry them beside the data. */
export function attributesOf(event: TapeEvent): [name: string, value: string][] {
  const { data: _, ...attributes } = event;
  return Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
}

/** Part of a subject or topic: brokers give dots, spaces and wildcards a meaning, so other characters are escaped. */
export const tokenOf = (text: string): string =>
  text.replace(/[^A-Za-z0-9_-]/gu, (character) => `=${character.codePointAt(0)!.toString(16)}`) || "-";
