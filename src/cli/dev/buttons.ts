import type { Store } from "../../store/contract/store.ts";
import type { Fault } from "./treasury.ts";

/** The value that makes the dashboard show the fault buttons, and the value it writes when one is pressed. */
const stageKey = "tape-dev/stage";
const faultKey = "tape-dev/fault";
const faults: readonly Fault[] = ["kill", "zombie", "lose"];

/** The keys of `dev` as buttons of the dashboard. They use two stored values, so the page needs no extra call. */
export class Buttons {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #press: (fault: Fault) => void;
  #version = 0;

  constructor(store: Store, tenant: string, press: (fault: Fault) => void) {
    this.#store = store;
    this.#tenant = tenant;
    this.#press = press;
  }

  async show(): Promise<void> {
    await this.#store.intake.putValue(this.#tenant, stageKey, { faults, workflow: "treasury" }, "unconditional");
  }

  /** Reports the button that was last pressed since the previous poll. */
  async poll(): Promise<void> {
    const pressed = await this.#store.read.value(this.#tenant, faultKey);
    if (pressed === undefined || pressed.version <= this.#version) return;
    this.#version = pressed.version;
    const name = (pressed.value as { readonly fault?: unknown } | null)?.fault;
    const fault = faults.find((known) => known === name);
    if (fault !== undefined) this.#press(fault);
  }
}
