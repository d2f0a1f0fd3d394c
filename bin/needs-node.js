// The first import of every entry point of the library: on a Node that lacks what Tape uses, its sentence is the error.
import node from "./node-version.cjs";

node.assertCanRun();
