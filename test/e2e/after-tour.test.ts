/**
 * What comes after a first tour: a short seeded run of `make fuzz` against the service that serves then, and another tour.
 */
import assert from 'node:assert/strict';
import { tourName } from '#services/workflows/provision.ts';
import { fuzz, install, prepare } from '#test/fuzz/recipe.ts';
import { freely, touredBy } from '#test/fuzz/service.ts';
import { orMissing } from '#test/support/missing.ts';
import { type Pds, sharedPds } from '#test/support/networks/pds.ts';
import { dataFolder } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { assertPassed } from '#test/support/tour.ts';

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

/** Generated calls of every operation, valid and not: no answer is a 5xx, and each is one that the contract promises. */
const minCalls = 500;
/** Without Python, or where pip reaches no packages, a machine other than CI leaves the run out. */
const fuzzing = await install(() => undefined).then(
  (bin) => ({ bin }),
  (error: Error) => ({ missing: error.message }),
);

suite('after the tour', { drawn: true, costs: 80, timeoutMs: 480_000 }, (t) => {
  const folder = dataFolder();
  const { dataDir } = folder;
  /** Has taken a tour, and serves until `--tour-only` needs the folder. */
  let service: Process;
  t.before(async () => {
    service = await start(main, {
      args: ['--data', dataDir, '--port', '0'],
      env: freely,
      readyAt: /^Serving/m,
      within: 150_000,
    });
  });
  t.after(() => folder.drop());

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
