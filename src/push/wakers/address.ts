import { TapeError } from "../../model/errors.ts";

/** Refuses what is no address, before anything is sent. */
export function assertAddress(subject: string, url: unknown): void {
  const text = String(url).replaceAll("{reactor}", "x");
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: url must be an http or https address`, { field: "url" });
}

/** The address of one reactor's handler. */
export const toReactor = (url: string, reactor: string): string =>
  url.replaceAll("{reactor}", encodeURIComponent(reactor));
