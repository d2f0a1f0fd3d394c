import type { Bug } from "../bug.ts";

export const sealedBugs: readonly Bug[] = [
  {
    name: "encrypted, then sent in clear",
    planted: "the input of a start is encrypted, and the start sends what it was given",
    why: "The codec is called and every read works, because a plain payload is accepted: only the rows show it.",
    patches: [
      { file: "seal/sealed-writes.ts", find: "      ...spec,\n      input: sealed,\n", replace: "      ...spec,\n" },
      {
        file: "seal/sealed-writes.ts",
        find: "const sealed = await this.#coder.seal(input,",
        replace: "await this.#coder.seal(input,",
      },
    ],
    detectedBy: ["payloadsAreSealed"],
    kind: "with a codec",
    within: 50,
  },
];
