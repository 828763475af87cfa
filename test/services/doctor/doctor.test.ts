/** The doctor as an operator types it. */
import assert from 'node:assert/strict';
import { startX, type XNetwork } from '#test/support/networks/x/index.ts';
import { freePort } from '#test/support/port.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';

suite('npm run doctor', (t) => {
  let network: XNetwork;
  let env: Record<string, string>;
  t.before(async () => {
    network = await startX({ redirectUri: 'https://postline.test/connect/callback', clientSecret: 'of-the-app' });
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    env = {
      ...{ BLUESKY_RESOLVER: nowhere, BLUESKY_DIRECTORY: nowhere, BLUESKY_APP_VIEW: nowhere, PRIVATE_TARGETS: '*' },
      ...{ X_API: network.origin, X_AUTHORIZE: `${network.origin}/i/oauth2/authorize`, X_CLIENT_ID: 'app-id' },
      ...{ X_CLIENT_SECRET: 'of-the-app', BASE_URL: 'https://postline.test/v1' },
    };
  });
  t.after(() => network.close());
  const typed = (args: readonly string[], more: Record<string, string> = {}) =>
    run('services/doctor/main.ts', { env: { ...env, ...more }, args: [...args] });

  t('says in lines what works and what must be fixed, and ends with 1', async () => {
    const { code, output } = await typed(['networks']);
    assert.equal(code, 1, output);
    assert.match(output, /^x\n {2}ok +address +Owners come back to https:\/\/postline\.test\.$/m);
    assert.match(output, /^ {2}ok +redirect address +X sends owners back/m);
    assert.match(
      output,
      /^bluesky\n {2}off +client +BLUESKY_OAUTH_KEYS is not set.*\n +→ .*\n {2}fix +resolver of handles +No connection to .*\n +→ Let this machine open/m,
    );
    assert.match(output, /^telegram\n {2}off +bot/m);
    assert.match(output, /^tiktok\n {2}off +app/m);
    assert.match(output, /^instagram\n {2}off +app +INSTAGRAM_CLIENT_ID is not set/m);
    assert.ok(!output.includes('not built'));
    assert.match(output, /\n3 to fix\.$/);
    assert.ok(!output.includes('of-the-app'));
  });

  t('says the same as JSON', async () => {
    const { code, output } = await typed(['networks', '--json'], { CONSOLE_URL: 'https://people.test' });
    assert.equal(code, 1);
    const { ok, networks } = JSON.parse(output);
    assert.equal(ok, false);
    const x = networks.find((one: { network: string }) => one.network === 'x');
    const redirect = x.findings.find((one: { about: string }) => one.about === 'redirect address');
    assert.equal(redirect.verdict, 'fix');
    assert.match(redirect.words, /https:\/\/people\.test\/connect\/callback/);
    assert.equal(networks.length, 10);
    assert.equal(networks.filter((one: { built: boolean }) => one.built).length, 10);
  });

  t('ends with 2 where it is not understood', async () => {
    for (const args of [['accounts'], ['networks', 'x'], ['networks', '--loud'], ['--json']]) {
      const { code, output } = await typed(args);
      assert.equal(code, 2, args.join(' '));
      assert.match(output, /See npm run doctor -- --help\.$/);
    }
    const misset = await typed(['networks'], { BASE_URL: 'postline' });
    assert.equal(misset.code, 2);
    assert.match(misset.output, /BASE_URL/);
    const { code, output } = await typed(['--help']);
    assert.equal(code, 0);
    assert.match(output, /^Usage: npm run doctor/);
  });
});
