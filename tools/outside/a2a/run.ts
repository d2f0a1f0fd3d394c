// The adapter behind the SDK's own servers and clients, compared with the SDK's own stores; and, in a folder that
// TAPE_A2A_TCK names, the protocol's own compatibility kit (branch 1.0-dev of a2aproject/a2a-tck) against both.
import { typeCheck, vitest } from "../checks.ts";
import { finish, sumOf } from "../totals.ts";
import { compatibilityKit } from "./tck/compare.ts";

const folder = import.meta.dirname;
finish(sumOf([await typeCheck(folder), await vitest(folder), await compatibilityKit(process.env.TAPE_A2A_TCK)]));
