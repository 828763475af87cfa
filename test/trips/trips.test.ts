import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import type { Size } from './coverage.ts';

/** Files of ours that a `POST /v1/posts` runs through, without idle loops. May only become fewer. */
const maxFilesOfPost = 107;

/** Servers of the run. Coverage is by file: from the sources, and not from code that an earlier start compiled. */
const env = Object.fromEntries(
  Object.entries({ ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' }).filter(([name]) =>
    /^(TEST_(DATABASE_URL|PREPARED_DATABASE|COPY_STRATEGY)|DATABASE_URL|NODE_DISABLE_COMPILE_CACHE)$/.test(name),
  ),
) as Readonly<Record<string, string>>;

suite('trips through the code', (t) => {
  t(`POST /v1/posts runs through at most ${maxFilesOfPost} files`, async () => {
    const args = ['--only', 'POST /v1/posts', '--json'];
    const { code, output } = await run('test/trips/run.ts', { args, env, sources: true });
    assert.equal(code, 0, output);
    const { all, own, files } = JSON.parse(output) as {
      readonly all: Size;
      readonly own: Size;
      readonly files: readonly string[];
    };
    for (const place of ['services/api/posts/create.ts', 'services/domain/post/post.ts', 'projections/models/posts.ts'])
      assert.ok(files.includes(place), `${place} did not run: the counter is broken`);
    assert.ok(own.files <= all.files && own.functions <= all.functions && own.functions > 400, output);
    assert.ok(own.files <= maxFilesOfPost, `${own.files} files: ${files.join(' ')}`);
  });

  t('the walk of a POST by hand names functions of its files, as many as it counts', () => {
    const paper = readFileSync(path.join(import.meta.dirname, 'README.md'), 'utf8');
    const [, walk = ''] = paper.split('## A POST by hand');
    const stops = [...walk.matchAll(/^(\d+)\. `([\w./-]+\.ts)`: ([\s\S]*?)(?=^\d+\. |$(?![\s\S]))/gm)];
    const [, toAnswer = '', all = ''] = /(\d+) to the\s+answer, (\d+) until/.exec(walk) ?? [];
    assert.equal(stops.length, Number(all));
    assert.equal(stops[Number(toAnswer) - 1]?.[2], 'services/api/http/rest.ts', 'the answer is written there');
    for (const [, number = '', file = '', words = ''] of stops) {
      const text = readFileSync(path.join(import.meta.dirname, '../..', file), 'utf8');
      const named = [...words.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
      assert.ok(named.length > 0, `stop ${number} names no function`);
      for (const name of named) assert.match(text, new RegExp(`\\b${name}\\b`), `stop ${number}: ${file}`);
    }
  });
});
