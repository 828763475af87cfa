/** What `npm start` performs before the reader's eyes, and what it prints to be tried: at a first start and later. */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { platforms } from '#schemas/common.ts';
import { tourName } from '#services/workflows/provision.ts';
import { fuzz, install, prepare } from '#test/fuzz/recipe.ts';
import { freely, touredBy } from '#test/fuzz/service.ts';
import { callerOf } from '#test/support/http.ts';
import { orMissing } from '#test/support/missing.ts';
import { type Pds, sharedPds } from '#test/support/networks/pds.ts';
import { dataFolder } from '#test/support/postgres.ts';
import { type Process, printedUrl, run, start } from '#test/support/processes.ts';
import { curlCall } from '#test/support/shell-words.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const main = 'services/standalone/main.ts';

/** Where no registry answers, the tour stays in the sandbox. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

/** A test identity on the real server, for which the tour publishes a post. */
const accountOf = async (pds: Pds) => {
  const ann = await pds.identity();
  const password = await pds.appPassword(ann);
  const params = { repo: ann.did, collection: 'app.bsky.feed.post' };
  return {
    password,
    env: {
      TOUR_BLUESKY: `${ann.handle}:${password}`,
      PRIVATE_TARGETS: [pds.service, pds.directory].map((url) => new URL(url).host).join(),
      ...{ BLUESKY_RESOLVER: pds.service, BLUESKY_DIRECTORY: pds.directory, BLUESKY_APP_VIEW: pds.service },
    },
    posts: async () =>
      (await pds.call('com.atproto.repo.listRecords', { params })).records as readonly {
        readonly value: { readonly text: string };
      }[],
  };
};

/**
 * A short seeded run of `make fuzz`, against the service that serves after its tour: generated calls of every operation,
 * valid and not. No answer is a 5xx, and each is one that the contract promises.
 */
const minCalls = 500;
/** Without Python, or where pip reaches no packages, a machine other than CI leaves the run out. */
const fuzzing = await install(() => undefined).then(
  (bin) => ({ bin }),
  (error: Error) => ({ missing: error.message }),
);

interface Overview {
  readonly totals: Readonly<Record<string, number | null>>;
  readonly byPlatform: readonly unknown[];
}

/** In the zone of the first workspace. */
const today = (): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short' }).format(new Date());

/** What a tour shows that has passed, whether it ends the process or not. */
const assertPassed = (output: string): void => {
  const table = output.split('\n').slice(output.split('\n').findIndex((line) => line.startsWith('platform ')) + 1);
  const rows = table.slice(0, platforms.length).map((line) => line.split(/\s{2,}/));
  assert.deepEqual(new Set(rows.map(([platform]) => platform)), new Set(platforms));
  for (const [platform, status, at, attempts, permalink] of rows) {
    assert.equal(status, 'published', platform);
    assert.ok(!Number.isNaN(Date.parse(at ?? '')), at);
    assert.equal(attempts, platform === 'linkedin' ? '2' : '1', platform);
    assert.match(permalink ?? '', /^https:\/\//);
  }
  for (const event of [
    /linkedin rate_limited/,
    /facebook published .*found by asking/,
    /pinterest is due later/,
    /x first comment posted .*“Book a table.*” as \d{19}/,
    /post previewed .*accepted; tiktok would fail with tiktok_privacy_level_required; nothing is written/,
    /post previewed .*accepted; 10 targets would go out; nothing is written/,
    /3 posts in one call .*2 created, 1 rejected: \/content (X|Bluesky) takes at most/,
    /4 targets in one call .*4 canceled/,
  ]) {
    assert.match(output, event);
  }
  assert.match(output, /youtube handed_to_platform .*publishes it at \d{4}-/);
  assert.match(output, /taken back .*undo pending/);
  assert.match(output, /youtube canceled .*undo done/);
  assert.match(output, /a post to approve .*pending_approval; 2 targets awaiting_approval/);
  assert.match(output, /approved .*by Mia from Northwind through the link: “Lovely\.”; 2 targets pending/);
  assert.match(output, /campaign shifted .*2 targets by a day: from \d{4}-/);
  const received = output
    .split('\n')
    .slice(output.split('\n').findIndex((line) => line.startsWith('event at the webhook ')) + 1);
  const events = received.slice(0, received.indexOf('')).map((line) => line.split(/\s{2,}/));
  assert.ok(
    events.every(([, , , , , signatures]) => signatures === 'both valid'),
    output,
  );
  const ids = events.map(([, , , id]) => id);
  assert.equal(new Set(ids).size, ids.length, 'an id for each event');
  const times = (type: string) => events.filter(([one]) => one === type).length;
  for (const type of ['post.created', 'post.scheduled', 'post.published', 'target.first_comment_posted']) {
    assert.equal(times(type), 1, type);
  }
  for (const type of ['target.scheduled', 'target.published']) assert.equal(times(type), platforms.length, type);
  const lines = output.split('\n');
  const overview = lines.slice(lines.findIndex((line) => line.startsWith('overview ')) + 1);
  const figures = overview.slice(0, platforms.length + 1).map((line) => line.split(/\s{2,}/));
  assert.deepEqual(new Set(figures.map(([name]) => name)), new Set([...platforms, 'workspace']));
  for (const [name = '', impressions = '', , likes = ''] of figures) {
    // Networks that do not tell how often a post was shown are not said to have shown it 0 times.
    const reported = !['bluesky', 'telegram', 'tiktok', 'youtube'].includes(name);
    assert.match(impressions, reported ? /^[\d,]+$/ : /^–$/, name);
    assert.match(likes, /^[\d,]+$/, name);
  }
  const sum = (values: readonly string[]): number =>
    values.reduce((all, value) => all + (value === '–' ? 0 : Number(value.replaceAll(',', ''))), 0);
  const [total] = figures.filter(([name]) => name === 'workspace');
  assert.equal(
    sum(figures.flatMap(([name, , , likes = '']) => (name === 'workspace' ? [] : [likes]))),
    sum([total?.[3] ?? '']),
  );
  assert.match(output, /impressions a day, .*: {2}·?[▁▂▃▄▅▆▇█]{7}/);
};

suite('the tour', { timeoutMs: 480_000 }, (t) => {
  const folder = dataFolder();
  const { dataDir } = folder;
  /** Has taken a tour, and serves until `--tour-only` needs the folder. */
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
      env: freely,
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

  const calls = `at least ${minCalls} generated calls of all operations get answers that the contract promises`;
  if ('missing' in fuzzing) t.skip(calls, fuzzing.missing);
  else
    t(calls, async () => {
      const called = await touredBy(service, { args: ['--data', dataDir] });
      await prepare(called);
      const phases = ['examples', 'coverage', 'fuzzing', 'stateful'] as const;
      const { bin } = fuzzing;
      const report = await fuzz(bin, called, { seed: 20_261, phases, examples: 1, everyNth: 16, within: 360_000 });
      assert.equal(report.failure, null, report.output);
      assert.ok(report.cases >= minCalls, `only ${report.cases} calls were made`);
      assert.ok(service.running, service.output());
    });

  t('after all that it drains', async () => {
    const { code } = await service.stop();
    assert.equal(code, 0, service.output());
  });

  t('--tour-only runs it again, in a workspace of its own, and ends with 0', async () => {
    const args = ['--data', dataDir, '--port', '0', '--tour-only'];
    const real = 'missing' in opened ? null : await accountOf(opened.pds);
    const { code, output } = await run(main, { args, env: real?.env ?? {}, within: 120_000 });
    assert.equal(code, 0, output);
    if (real !== null) {
      const [post, ...more] = await real.posts();
      assert.match(String(post?.value.text), /^Winter menu is here/, 'the network has it, read from there');
      assert.deepEqual(more, []);
      assert.match(output, /bluesky published .*https:\/\/bsky\.app\/profile\/did:plc:\w+\/post\/\w+/);
      assert.ok(!output.includes(real.password));
    }
    assertPassed(output);
    assert.ok(!/Serving/.test(output), 'it does not stay');
    const listed = await run('services/admin/main.ts', { args: ['workspace', 'list', '--data', dataDir, '--json'] });
    const all = JSON.parse(listed.output.split('\n').at(-1) ?? '') as readonly { readonly name: string }[];
    assert.equal(all.filter(({ name }) => name === tourName).length, 2, listed.output);
  });
});
