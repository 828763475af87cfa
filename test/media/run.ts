/**
 * `make test-media`: many real sources through probe, plan and render for every network and use; each file is then held
 * against what its network says, by code that shares nothing with the planner. `--help` lists the options.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { planRenditions } from '#domain/renditions/index.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { type MediaNeed, mediaUses, type RenditionSpec } from '#schemas/media.ts';
import { limits, violations } from '#test/support/media/check.ts';
import { never } from '#test/support/media/specs.ts';
import { sources } from './sources.ts';

const help = `make test-media ARGS="[--only <text>] [--long] [--list]"

  --only <text>   sources that have it in their name
  --long          the sources of minutes as well
  --list          print the names of the sources
  --keep          leave the files, and print where they are`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const { values } = parseArgs({
  options: {
    ...{ help: { type: 'boolean' }, only: { type: 'string' }, long: { type: 'boolean' } },
    ...{ list: { type: 'boolean' }, keep: { type: 'boolean' } },
  },
});

const needs: readonly MediaNeed[] = platforms.flatMap((platform: Platform) =>
  mediaUses.filter((use) => limits[platform][use] !== undefined).map((use) => ({ platform, use })),
);

const shape = (spec: RenditionSpec): string =>
  `${spec.kind === 'video' ? spec.mode : spec.format} ${spec.width}x${spec.height}${spec.fit === 'pad' ? ' with bars' : ''}`;

const main = async (): Promise<number> => {
  const chosen = sources.filter(({ name, long }) => name.includes(values.only ?? '') && (values.long || !long));
  if (values.help) print(help);
  if (values.list) for (const { name } of chosen) print(name);
  if (values.help || values.list) return 0;
  const folder = mkdtempSync(join(tmpdir(), 'test-media-'));
  const workDir = join(folder, 'work');
  mkdirSync(workDir);
  const transcoder = openTranscoder({ ffmpegPath: process.env.FFMPEG_PATH ?? null, workDir, warn: print });
  const failures: string[] = [];
  let files = 0;
  try {
    for (const { name, make } of chosen) {
      const begun = performance.now();
      const path = await make(folder);
      const sniffed = await transcoder.sniff(path);
      if (sniffed === null) throw new Error(`${name}: nothing that is taken`);
      const probe = await transcoder.probe(path, sniffed, { signal: never() });
      const planned = planRenditions(probe, needs);
      const specs = new Map(planned.flatMap((need) => (need.outcome === 'rendition' ? [[need.id, need.spec]] : [])));
      const wanted = [...specs].map(([id, spec]) => ({
        id,
        spec,
        to: join(folder, `${id}.${spec.kind === 'video' ? 'mp4' : spec.format}`),
      }));
      const made = await transcoder.render({ path, probe }, wanted, {
        threads: availableParallelism(),
        signal: never(),
      });
      const counts = { fits: 0, rendition: 0, failed: 0 };
      for (const need of planned) {
        counts[need.outcome] += 1;
        if (need.outcome === 'failed') continue;
        const where = `${name} for ${need.platform} ${need.use}`;
        const result = need.outcome === 'fits' ? null : made.find(({ id }) => id === need.id);
        if (result?.kind === 'failed') {
          failures.push(`${where}: ${result.failure.code}: ${result.failure.message}`);
          continue;
        }
        const moves = need.outcome === 'rendition' ? need.spec.kind === 'video' : probe.kind === 'video';
        const wrong = await violations(result?.path ?? path, moves, need.platform, need.use);
        files += 1;
        failures.push(...wrong.map((each) => `${where} (${need.outcome}): ${each}`));
      }
      const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
      print(
        `${name}: ${counts.fits} fit, ${counts.rendition} made as ${specs.size} files, ${counts.failed} cannot be; ${seconds} s`,
      );
      print(`  ${[...specs.values()].map(shape).join(', ')}`);
      for (const each of made) rmSync('path' in each ? each.path : '', { force: true });
    }
  } finally {
    if (values.keep) print(folder);
    else rmSync(folder, { recursive: true, force: true });
  }
  for (const failure of failures) print(`FAIL ${failure}`);
  print(`${files} files checked, ${failures.length} wrong`);
  return failures.length === 0 ? 0 : 1;
};

process.exitCode = await main();
