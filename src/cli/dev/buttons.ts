import type { Store } from "../../store/contract/store.ts";
import type { Fault } from "./treasury.ts";

/** What the dashboard looks for, to offer its buttons, and where it says which was pressed. */
const stageKey = "tape-dev/stage";
const faultKey = "tape-dev/fault";
const faults: readonly Fault[] = ["kill", "zombie", "lose"];

/** The keys of `dev` as buttons of its page, by way of two values: the page needs no call of its own for them. */
export class Buttons {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #press: (deed: Fault) => void;
  #heard = 0;

  constructor(store: Store, tenant: string, press: (deed: Fault) => void) {
    this.#store = store;
    this.#tenant = tenant;
    this.#press = press;
  }

  async show(): Promise<void> {
    await this.#store.intake.putValue(this.#tenant, stageKey, { faults, workflow: "treasury" }, "unconditional");
  }

  /** Does what was pressed last since the look before. */
  async look(): Promise<void> {
    const pressed = await this.#store.read.value(this.#tenant, faultKey);
    if (pressed === undefined || pressed.version <= this.#heard) return;
    this.#heard = pressed.version;
    const wanted = (pressed.value as { readonly fault?: unknown } | null)?.fault;
    const deed = faults.find((one) => one === wanted);
    if (deed !== undefined) this.#press(deed);
  }
}
