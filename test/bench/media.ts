/**
 * Media: all renditions of a source beside the bare ffmpeg commands that make the same files, a source that fits from
 * its registration to `media.ready`, and uploads beside a bare stream to disk.
 *
 * Run alone: make bench-media, or a part: make bench-media ARGS="renditions upload" (QUICK=1 for the short form).
 */
import { parseArgs } from 'node:util';
import { fitting } from './media/fitting.ts';
import { renditions } from './media/renditions.ts';
import { sharing } from './media/sharing.ts';
import { machine } from './media/tools.ts';
import { type BenchRow, printRows } from './row.ts';
import { upload } from './upload.ts';

type Part = (quick: boolean) => Promise<readonly BenchRow[]>;

const parts: Readonly<Record<string, { readonly says: string; readonly run: Part }>> = {
  renditions: { says: 'one source that fits nobody, made into what ten networks take', run: renditions },
  fitting: { says: 'one source that fits, from its registration to media.ready', run: fitting },
  sharing: { says: 'two workers and six clips: how many processors they use', run: sharing },
  upload: { says: 'a large file through the api to a folder', run: (quick) => upload({ quick }) },
};

const help = `usage: make bench-media ARGS="[part]…"      (or: npm run bench-media -- [part]…)

${Object.entries(parts)
  .map(([name, { says }]) => `  ${name.padEnd(11)} ${says}`)
  .join('\n')}

Without a part: all of them, about 10 minutes; QUICK=1: 2 minutes, for development. FFMPEG_PATH names another ffmpeg. The
exit code is 0 also when a goal is missed: the table says MISSED.`;

const main = async (): Promise<void> => {
  const { values, positionals } = parseArgs({ options: { help: { type: 'boolean' } }, allowPositionals: true });
  if (values.help === true) return console.log(help);
  const unknown = positionals.find((name) => parts[name] === undefined);
  if (unknown !== undefined)
    throw new Error(`no part is called ${unknown}: there are ${Object.keys(parts).join(', ')}`);
  const quick = process.env.QUICK === '1';
  if (quick) console.log('QUICK=1: the short form');
  for (const line of await machine()) console.log(line);
  const rows: BenchRow[] = [];
  for (const name of positionals.length === 0 ? Object.keys(parts) : positionals) {
    console.log(`media, ${name}: ${parts[name]?.says} …`);
    const own = (await parts[name]?.run(quick)) ?? [];
    printRows(own);
    rows.push(...own);
  }
  console.log();
  printRows(rows);
};

if (import.meta.main) await main();
