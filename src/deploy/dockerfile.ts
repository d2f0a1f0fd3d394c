import { plainFile, type RenderedFile } from "./text.ts";

/** The line of Node that the image runs: the newest with long-term support that the package accepts. */
const base = "node:24-slim";

/**
 * The image of every service. Dependencies are installed in a stage of their own, so that the image contains no cache of
 * npm. Files belong to root and the process is another user, so it cannot change its own code. The command is `node`
 * itself: npm would be process 1 and would not pass SIGTERM on. `folder` is the rendered one, which the image does not need.
 */
export function dockerFiles(folder: string): RenderedFile[] {
  return [
    plainFile("Dockerfile", [
      `FROM ${base} AS build`,
      "WORKDIR /app",
      "COPY package.json package-lock.json ./",
      "RUN npm ci --omit=dev --ignore-scripts",
      "COPY . .",
      "",
      `FROM ${base}`,
      "ENV NODE_ENV=production",
      "WORKDIR /app",
      "COPY --from=build /app /app",
      "USER node",
      "STOPSIGNAL SIGTERM",
      'CMD ["node", "node_modules/durable-tape/bin/tape-reactors.js"]',
    ]),
    plainFile("Dockerfile.dockerignore", [
      "# What docker build must not send: secrets, local state, and what npm ci installs in the image.",
      ...["node_modules", ".git", ".env", ".env.*", ".npmrc", ".tape"].map((name) => `**/${name}`),
      ...["*.db", "*.db-shm", "*.db-wal", "*.pem", "*.key"].map((name) => `**/${name}`),
      ...(folder === "." || folder.startsWith("..") ? [] : [folder]),
    ]),
  ];
}
