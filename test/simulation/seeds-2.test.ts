import { runSeeds } from "./seeds.ts";

runSeeds(2);
