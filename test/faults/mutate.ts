/**
 * Loaded before one of our processes: turns it into the broken build that MUTANT names. It ends at once where it
 * cannot.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { mutantNames, mutants } from './mutants.ts';

const name = mutantNames.find((one) => one === process.env.MUTANT);
if (name === undefined) throw new Error(`MUTANT must be one of ${mutantNames.join(', ')}`);
const { file, from, to } = mutants[name];
const url = new URL(`../../${file}`, import.meta.url);
if (readFileSync(url, 'utf8').split(from).length !== 2) {
  throw new Error(`the mutant "${name}" does not fit ${file} any more`);
}
registerHooks({
  load(asked, context, next) {
    const loaded = next(asked, context);
    if (asked !== url.href) return loaded;
    return { ...loaded, source: String(loaded.source).replace(from, () => to) };
  },
});
if (isMainThread) await import('#test/support/follow-parent.ts');
