import { postgresPlace } from "./places.ts";
import { validate } from "./validate.ts";

validate(postgresPlace());
