import type { Store } from "../../store/contract.ts";
import type { Deed } from "./treasury.ts";

/** What the dashboard looks for, to offer its buttons, and where it says which was pressed. */
const stageKey = "tape-dev/stage";
const deedKey = "tape-dev/deed";
const deeds: readonly Deed[] = ["kill", "zombie", "lose"];

/** The keys of `dev` as buttons of its page, by way of two values: the page needs no call of its own for them. */
export class Buttons {
  readonly #store: Store;
  readonly #tenant: string;
  readonly #press: (deed: Deed) => void;
  #heard = 0;

  constructor(store: Store, tenant: string, press: (deed: Deed) => void) {
    this.#store = store;
    this.#tenant = tenant;
    this.#press = press;
  }

  async show(): Promise<void> {
    await this.#store.intake.putValue(this.#tenant, stageKey, { deeds, workflow: "treasury" }, "unconditional");
  }

  /** Does what was pressed last since the look before. */
  async look(): Promise<void> {
    const pressed = await this.#store.read.value(this.#tenant, deedKey);
    if (pressed === undefined || pressed.version <= this.#heard) return;
    this.#heard = pressed.version;
    const wanted = (pressed.value as { readonly deed?: unknown } | null)?.deed;
    const deed = deeds.find((one) => one === wanted);
    if (deed !== undefined) this.#press(deed);
  }
}
