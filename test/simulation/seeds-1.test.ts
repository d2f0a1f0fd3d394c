import { runSeeds } from "./seeds.ts";

runSeeds(1);
