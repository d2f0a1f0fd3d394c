import { type PostgresServer, startPostgres } from "../../../../test/postgres/server.ts";
import { comparedOn } from "./compared.ts";

let server: PostgresServer;
comparedOn(
  "PostgreSQL",
  async () => {
    server = await startPostgres({ major: 18 });
    return server.url;
  },
  () => server.stop(),
);
