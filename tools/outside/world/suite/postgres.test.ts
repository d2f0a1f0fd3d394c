import { type PostgresServer, startPostgres } from "../../../../test/postgres/server.ts";
import { validate } from "./validate.ts";

let server: PostgresServer;
validate(
  "the world on PostgreSQL",
  async () => {
    server = await startPostgres({ major: 18 });
    return server.url;
  },
  () => server.stop(),
);
