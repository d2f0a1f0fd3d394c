import { type PostgresServer, startPostgres } from "../../../../test/postgres/server.ts";
import { validate } from "./saver.ts";

let server: PostgresServer;
validate(
  "TapeSaver on PostgreSQL",
  async () => {
    server = await startPostgres({ major: 18 });
    return server.url;
  },
  () => server.stop(),
);
