import { randomBytes } from "node:crypto";
import pg from "pg";

/** Creates an empty database with a unique name on that server and returns its url. */
export async function freshDatabase(url: string): Promise<string> {
  const name = `tape_test_${randomBytes(8).toString("hex")}`;
  // template0, because creating from template1 fails while a client is connected to it.
  await admin(url, `create database ${name} template template0`);
  const fresh = new URL(url);
  fresh.pathname = `/${name}`;
  return fresh.href;
}

/** Drops a database made by freshDatabase, together with any connections that a test has left open. */
export async function dropDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  if (!/^tape_test_[0-9a-f]+$/.test(name)) throw new Error(`${name} was not made by freshDatabase`);
  const server = new URL(url);
  server.pathname = "/postgres";
  await admin(server.href, `drop database if exists ${name} with (force)`);
}

async function admin(url: string, statement: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
