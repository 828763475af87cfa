/** What `npm start` performs before the reader's eyes, and what it prints to be tried, at a first start. */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { platforms } from '#schemas/common.ts';
import { callerOf } from '#test/support/http.ts';
import { dataFolder } from '#test/support/postgres.ts';
import { type Process, printedUrl, start } from '#test/support/processes.ts';
import { curlCall } from '#test/support/shell-words.ts';
import { suite } from '#test/support/suite.ts';
import { assertPassed } from '#test/support/tour.ts';
import { until } from '#test/support/until.ts';

const main = 'services/standalone/main.ts';

interface Overview {
  readonly totals: Readonly<Record<string, number | null>>;
  readonly byPlatform: readonly unknown[];
}

/** In the zone of the first workspace. */
const today = (): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(new Date());

suite('the tour', { timeoutMs: 240_000 }, (t) => {
  const folder = dataFolder();
  const { dataDir } = folder;
  /** Has taken a tour, and serves. */
  let service: Process;
  /** Of the workspace that the first start makes, and of that of the tour. */
  let ownKey = '';
  let tourKey = '';
  t.after(() => folder.drop());

  const baseUrl = (): string => printedUrl(service.output());
  const by = (key: string) => callerOf(baseUrl, key);

  t('the first start shows its keys once, runs the main job before the reader, and serves', async () => {
    service = await start(main, {
      args: ['--data', dataDir, '--port', '0'],
      readyAt: /^Serving/m,
      within: 150_000,
      sources: true,
    });
    const output = service.output();
    ownKey = /test key \(sandbox[^)]*\) +(sk_test_\S+)/.exec(output)?.[1] ?? '';
    tourKey = /Bearer (sk_test_[^']+)' '\S+\/analytics\/overview'/.exec(output)?.[1] ?? '';
    const liveKey = /sk_live_\S+/.exec(output)?.[0] ?? '';
    assert.equal(output.split(liveKey).length, 2, 'the live key stands there once');
    assert.match(output, /10 of 10 targets published/);
    assertPassed(output);
    assert.equal((await by(tourKey).get('/agency')).data.mode, 'test');
    assert.equal((await by(liveKey).get('/agency')).data.mode, 'live');
    assert.equal((await by(tourKey).get('/post-targets?status=published&limit=100')).rows.length, 10);
    assert.deepEqual((await by(ownKey).get('/clients')).rows, [], 'the tour was elsewhere');
    for (const file of ['secret.key', 'pg.password'])
      assert.equal(statSync(path.join(dataDir, file)).mode & 0o777, 0o600, file);
  });

  t('the curl lines that it prints work, and show the figures of the tour', async () => {
    const lines = [...service.output().matchAll(/^ +curl -s (?:-H '([^']+)' )?'([^']+)'$/gm)];
    assert.equal(lines.length, 4);
    const shown = new Map<string, string>();
    for (const [, header, url = ''] of lines) {
      const answer = await fetch(
        url,
        header ? { headers: { authorization: header.replace('Authorization: ', '') } } : {},
      );
      assert.equal(answer.status, 200, url);
      shown.set(url, JSON.stringify(await answer.json()));
      assert.ok(String(shown.get(url)).length > 100);
    }
    // As it is printed, without dates.
    const { data } = JSON.parse(shown.get(`${baseUrl()}/analytics/overview`) ?? '{}') as { readonly data?: Overview };
    assert.ok(Number(data?.totals.impressions) > 1_000, JSON.stringify(data?.totals));
    assert.equal(data?.byPlatform.length, platforms.length);
    const link = /(http\S+\/join\/\S+)/.exec(service.output())?.[1] ?? '';
    assert.match(await (await fetch(link)).text(), /Tour of the sandbox/);
    // The clock of the first workspace's sandbox stands where it stood.
    const { data: theirs } = await by(ownKey).get('/analytics/overview');
    assert.deepEqual([theirs.asOf, theirs.to], [null, today()]);
  });

  t('the post that it prints after the tour is one to paste: two targets, published', async () => {
    const [curl = ''] = /curl -s -X POST [\s\S]*?\n {4}-d '[^']+'/.exec(service.output()) ?? [];
    const call = curlCall(curl, {});
    const answer = await fetch(call.url, call);
    const { data } = (await answer.json()) as { readonly data: { readonly id: string } };
    assert.equal(answer.status, 200, JSON.stringify(data));
    const statusOf = async () => (await by(tourKey).get(`/posts/${data.id}`)).data;
    await until('it is published', async () => (await statusOf()).status === 'published');
    assert.equal(((await statusOf()).targets as readonly unknown[]).length, 2);
  });

  t('the curl line of the README works', async () => {
    const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
    const [, curl = ''] = /```\n(curl[^`]+)```/.exec(readme) ?? [];
    for (const [, block = ''] of readme.matchAll(/```\n(curl[^`]+)```/g)) {
      assert.doesNotMatch(block, /\$\(|`/, 'it takes a program beside curl, which a bare machine may lack');
    }
    const clientId = (await by(tourKey).get('/clients?limit=1')).rows[0]?.id ?? '';
    const call = curlCall(curl.replaceAll('<client>', clientId), { POSTLINE_KEY: tourKey });
    const answer = await fetch(call.url.replace('http://127.0.0.1:8080/v1', baseUrl()), call);
    assert.equal(answer.status, 200, await answer.text());
  });

  t('after all that it drains', async () => {
    const { code } = await service.stop();
    assert.equal(code, 0, service.output());
  });
});
