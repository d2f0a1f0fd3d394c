import { defineConfig } from "vite";

/** Everything is a file of its own: the server's rules allow no inline script, no inline style, nothing from elsewhere. */
export default defineConfig({
  root: import.meta.dirname,
  build: {
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    chunkSizeWarningLimit: 1_000,
  },
});
