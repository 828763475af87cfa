/** Takes test files in turn: their addresses are its arguments. */
import { inTurn } from './suite.ts';

inTurn(process.argv.slice(2));
