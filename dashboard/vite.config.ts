import { defineConfig } from "vite";

/** Nothing is inlined: the server's Content-Security-Policy forbids inline scripts, inline styles and other origins. */
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
