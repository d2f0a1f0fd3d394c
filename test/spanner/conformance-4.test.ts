import { part } from "./conformance.ts";

part(3, 4);
