import { playSeeds } from "./seeds.ts";

playSeeds(2);
