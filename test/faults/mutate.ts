/**
 * Loaded before one of our processes: turns it into the broken build that MUTANT names. The process ends at once where the
 * marker of the mutant is not in its file.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';
import { mutantNames, mutants, mutate } from './mutants.ts';

const name = mutantNames.find((one) => one === process.env.MUTANT);
if (name === undefined) throw new Error(`MUTANT must be one of ${mutantNames.join(', ')}`);
const { file, to } = mutants[name];
const url = new URL(`../../${file}`, import.meta.url);
mutate(readFileSync(url, 'utf8'), name, to);
registerHooks({
  load(asked, context, next) {
    const loaded = next(asked, context);
    if (asked !== url.href) return loaded;
    return { ...loaded, source: mutate(String(loaded.source), name, to) };
  },
});
if (isMainThread) await import('#test/support/follow-parent.ts');
