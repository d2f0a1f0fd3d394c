import { effectPrograms } from "./effect-programs.ts";
import { examplePrograms } from "./example-programs.ts";
import { localPrograms } from "./local-programs.ts";
import type { Program } from "./program.ts";
import { slowPrograms, talkingPrograms } from "./talking-programs.ts";

/** All programs. Those that let hours pass come first, so that the time-outs of the others are still ahead at the end. */
export const programs: readonly Program[] = [
  ...slowPrograms,
  ...effectPrograms,
  ...talkingPrograms,
  ...localPrograms,
  ...examplePrograms,
];
