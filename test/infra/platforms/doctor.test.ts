/** What the doctor says of an installation, against the strict networks and the real server of Bluesky. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ApiVersions } from '#contracts/ports/api-version.ts';
import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { documentsOf } from '#infra/platforms/bluesky/oauth/client.ts';
import { apiVersions, type DoctorOptions, examineNetworks } from '#infra/platforms/doctor.ts';
import { kitNetworks, type LiveStores, liveNetworks } from '#infra/platforms/live.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { readConfig } from '#runtime/process/config.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { orMissing } from '#test/support/missing.ts';
import { type FacebookNetwork, startFacebook } from '#test/support/networks/facebook/index.ts';
import { type InstagramNetwork, startInstagram } from '#test/support/networks/instagram/index.ts';
import { type LinkedInNetwork, startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import type { LinkedInOptions } from '#test/support/networks/linkedin/state.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { type PinterestNetwork, startPinterest } from '#test/support/networks/pinterest/index.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import { startThreads, type ThreadsNetwork } from '#test/support/networks/threads/index.ts';
import { startTikTok, type TikTokNetwork } from '#test/support/networks/tiktok/index.ts';
import { startX, type XNetwork } from '#test/support/networks/x/index.ts';
import type { XNetworkOptions } from '#test/support/networks/x/state.ts';
import { startYouTube, type YouTubeNetwork } from '#test/support/networks/youtube/index.ts';
import { freePort } from '#test/support/port.ts';
import { suite } from '#test/support/suite.ts';

/** Where no registry answers, its test is left out, and says so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
const origin = 'https://postline.test';
const redirectUri = `${origin}/connect/callback`;

/** Nothing of these is reached: a test names what it needs. */
const nowhere = async (): Promise<Record<string, string>> => {
  const server = `http://127.0.0.1:${await freePort()}`;
  return {
    ...{ BLUESKY_RESOLVER: server, BLUESKY_DIRECTORY: server, BLUESKY_APP_VIEW: server },
    ...{ ...appsAt(server), TELEGRAM_API: server },
  };
};

/** An address of ours for every one that the networks of the kit have. */
const appsAt = (server: string): Record<string, string> =>
  Object.fromEntries(
    Object.keys(kitNetworks).flatMap((name) =>
      Object.keys(rulesOf(name as Platform).app?.addresses ?? {}).map((address) => [
        ...[`${name}_${address}`.toUpperCase(), server],
      ]),
    ),
  );
const clientIds = Object.fromEntries(
  Object.keys(kitNetworks).map((name) => [`${name.toUpperCase()}_CLIENT_ID`, 'app-id']),
);

const examined = async (
  network: Platform,
  env: Readonly<Record<string, string>>,
  over: Partial<DoctorOptions> & { readonly bot?: string } = {},
): Promise<readonly Finding[]> => {
  const config = { ...readConfig({ ...(await nowhere()), ...env }), telegramBotToken: over.bot ?? null };
  const all = await examineNetworks(
    { http, ...{ clock: Date.now, config, origin, files: origin }, ...over },
    AbortSignal.timeout(20_000),
  );
  return all.find((one) => one.network === network)?.findings ?? [];
};

const verdictsOf = (findings: readonly Finding[]) =>
  Object.fromEntries(findings.map(({ about, verdict }) => [about, verdict]));
const of = (findings: readonly Finding[], about: string): Finding => {
  const finding = findings.find((one) => one.about === about);
  assert.ok(finding !== undefined, `nothing about ${about}`);
  return finding;
};

suite('the doctor of x', (t) => {
  let network: XNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (options: XNetworkOptions = {}, more: Readonly<Record<string, string>> = {}) => {
    network = await startX({ redirectUri, ...options });
    const { clientId, clientSecret } = network.state.app;
    return {
      ...{ X_API: network.origin, X_AUTHORIZE: `${network.origin}/i/oauth2/authorize`, X_CLIENT_ID: clientId },
      ...(clientSecret === null ? {} : { X_CLIENT_SECRET: clientSecret }),
      ...more,
    };
  };

  t('finds nothing to fix in an app that is set up', async () => {
    for (const clientSecret of ['app:secret', null]) {
      const findings = await examined('x', await started({ clientSecret }));
      assert.deepEqual(verdictsOf(findings), {
        ...{ address: 'ok', client: 'ok', 'redirect address': 'ok', scopes: 'ok', 'API version': 'ok' },
      });
      network?.close();
    }
  });

  t('explains a redirect address that the app does not have', async () => {
    const findings = await examined('x', await started({ redirectUri: `${origin}/connect/callback/` }));
    const { verdict, words, remedy } = of(findings, 'redirect address');
    assert.equal(verdict, 'fix');
    assert.equal(words, `X does not know ${redirectUri} for this app.`);
    assert.match(String(remedy), /^Add exactly this address under Callback URI/);
    assert.equal(of(findings, 'client').verdict, 'ok');
    assert.equal(of(findings, 'scopes').verdict, 'cannot_tell');
  });

  t('names the scopes that the permissions of the app lack, and those alone', async () => {
    const appScopes = ['tweet.read', 'users.read', 'offline.access'];
    const { verdict, words, remedy } = of(await examined('x', await started({ appScopes })), 'scopes');
    assert.equal(verdict, 'fix');
    assert.equal(words, 'The app lacks tweet.write (to publish), media.write (to upload pictures and videos).');
    assert.match(String(remedy), /"Read and write"/);
  });

  t('tells a wrong client from a wrong redirect address, and does not show the secret', async () => {
    const wrong: readonly [XNetworkOptions, Record<string, string>][] = [
      [{}, { X_CLIENT_SECRET: 'not-the-secret' }],
      [{}, { X_CLIENT_ID: 'not-the-app' }],
      [{ clientSecret: null }, { X_CLIENT_SECRET: 'not-the-secret' }],
    ];
    for (const [options, env] of wrong) {
      const findings = await examined('x', await started(options, env));
      assert.equal(of(findings, 'client').verdict, 'fix', JSON.stringify(env));
      assert.notEqual(of(findings, 'redirect address').verdict, 'fix');
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
  });

  t('says that it cannot tell where X shows a page for people, and gives its address', async () => {
    const findings = await examined(
      'x',
      await started({ hidesFromStrangers: true, redirectUri: 'https://other.test' }),
    );
    const { verdict, remedy } = of(findings, 'redirect address');
    assert.equal(verdict, 'cannot_tell');
    const asked = new URL(/https?:\S+/.exec(String(remedy))?.[0] ?? '');
    assert.equal(asked.searchParams.get('redirect_uri'), redirectUri);
    assert.equal(of(findings, 'scopes').verdict, 'cannot_tell');
  });

  t('explains an API version that ends, and one that has ended', async () => {
    const endsAt = '2027-03-01';
    const versions: ApiVersions = { x: { version: 'API v2', endsAt, source: 'docs.x.com' } };
    const env = await started();
    const at = async (now: string) => {
      return of(await examined('x', env, { versions, clock: () => Date.parse(now) }), 'API version');
    };
    assert.equal((await at('2026-11-30T00:00:00Z')).verdict, 'ok');
    assert.deepEqual(await at('2026-12-01T00:00:00Z'), {
      ...{ about: 'API version', verdict: 'warn', words: 'API v2 ends on 2027-03-01, in 90 days (docs.x.com).' },
      remedy: 'Install a release of Postline with a newer adapter.',
    });
    assert.equal((await at('2027-02-28T23:59:59Z')).verdict, 'warn');
    const ended = await at('2027-03-01T00:00:00Z');
    assert.equal(ended.verdict, 'fix');
    assert.equal(ended.words, 'API v2 ended on 2027-03-01 (docs.x.com).');
  });

  t('does not blame the app for what passes', async () => {
    const env = await started();
    const busy = { status: 503, body: { errors: [{ code: 130, message: 'Over capacity' }] } };
    network?.script({ route: 'POST /2/oauth2/token', then: { answer: busy } });
    network?.script({ route: 'GET /i/oauth2/authorize', then: 'drop_before' });
    const findings = await examined('x', env);
    assert.equal(of(findings, 'client').verdict, 'cannot_tell');
    assert.equal(of(findings, 'redirect address').verdict, 'cannot_tell');
  });

  t('asks nothing where the settings alone are wrong', async () => {
    const env = await started();
    const calls = () => network?.state.calls.length;
    assert.deepEqual(verdictsOf(await examined('x', env, { origin: null })), { address: 'fix', 'API version': 'ok' });
    assert.equal(of(await examined('x', { X_CLIENT_SECRET: 'alone' }), 'app').verdict, 'fix');
    assert.equal(of(await examined('x', {}), 'app').verdict, 'off');
    assert.equal(of(await examined('x', { ...env, X_CLIENT_ID: '"app-id"' }), 'app').verdict, 'fix');
    assert.equal(calls(), 0);
    const plain = await examined('x', env, { origin: 'http://postline.test' });
    assert.equal(of(plain, 'address').verdict, 'fix');
    assert.equal(of(await examined('x', env, { origin: 'http://localhost:8080' }), 'address').verdict, 'warn');
  });

  t('shows what a network says as text alone', async () => {
    const env = await started();
    const error_description = `client \u001b[31m${'x'.repeat(5_000)}`;
    const answer = { status: 401, body: { error: 'invalid_client', error_description } };
    network?.script({ route: 'POST /2/oauth2/token', then: { answer } });
    const { words } = of(await examined('x', env), 'client');
    assert.ok(words.length < 300 && !words.includes('\u001b'), words);
  });
});

suite('the doctor of youtube', (t) => {
  let network: YouTubeNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (uri = redirectUri, more: Readonly<Record<string, string>> = {}) => {
    network = await startYouTube({ redirectUri: uri });
    return { ...network.env, ...more };
  };

  t('finds the client right, and gives the address at which an owner sees the rest', async () => {
    const findings = await examined('youtube', await started());
    assert.deepEqual(verdictsOf(findings), {
      ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell' },
      ...{ 'page of consent': 'cannot_tell', 'API version': 'ok' },
    });
    const { remedy } = of(findings, 'redirect address');
    assert.match(String(remedy), /redirect_uri_mismatch" means that/);
    assert.match(of(findings, 'scopes').words, /youtube\.upload \(to upload videos and their thumbnails\)/);
  });

  t('22: explains why connections end after seven days with invalid_grant, and what to do', async () => {
    const { words, remedy } = of(await examined('youtube', await started()), 'page of consent');
    assert.match(words, /Testing, Google ends each connection seven days after its consent, with invalid_grant/);
    assert.match(String(remedy), /publishing status to In production; owners then consent anew/);
  });

  t('tells a client that Google does not take, and shows no secret', async () => {
    for (const more of [{ YOUTUBE_CLIENT_SECRET: 'not-the-secret' }, { YOUTUBE_CLIENT_ID: 'not-the-app' }]) {
      const findings = await examined('youtube', await started(redirectUri, more));
      const client = of(findings, 'client');
      assert.deepEqual([client.verdict, /Copy the client ID/.test(String(client.remedy))], ['fix', true]);
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
  });

  t('explains a redirect address that the client does not have', async () => {
    const findings = await examined('youtube', await started(`${origin}/other`));
    const { verdict, remedy } = of(findings, 'redirect address');
    assert.equal(verdict, 'fix');
    assert.match(String(remedy), /Authorized redirect URIs/);
  });
});

suite('the doctor of linkedin', (t) => {
  let network: LinkedInNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (options: LinkedInOptions = {}, more: Readonly<Record<string, string>> = {}) => {
    network = await startLinkedIn({ redirectUri, ...options });
    return { ...network.env, ...more };
  };

  t('finds the client right, and gives the address at which a member sees the rest', async () => {
    const findings = await examined('linkedin', await started());
    assert.deepEqual(verdictsOf(findings), {
      ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell' },
      ...{ calls: 'cannot_tell', 'API version': 'ok' },
    });
    const { remedy } = of(findings, 'redirect address');
    assert.match(String(remedy), /"The redirect_uri does not match the registered value" means that/);
    const page = new URL(/https?:\S+/.exec(String(remedy))?.[0] ?? '');
    assert.equal(page.searchParams.get('redirect_uri'), redirectUri);
    assert.match(page.searchParams.get('scope') ?? '', /^openid profile w_member_social w_organization_social/);
    assert.match(of(findings, 'scopes').words, /w_organization_social \(to publish and comment as an organization\)/);
  });

  t('tells a client that LinkedIn does not take from one without a secret, and shows neither', async () => {
    for (const [more, remedy] of [
      [{ LINKEDIN_CLIENT_SECRET: 'not-the-secret' }, /Primary Client Secret/],
      [{ LINKEDIN_CLIENT_ID: 'not-the-app' }, /Primary Client Secret/],
    ] as const) {
      const findings = await examined('linkedin', await started({}, more));
      const client = of(findings, 'client');
      assert.deepEqual([client.verdict, remedy.test(String(client.remedy))], ['fix', true], JSON.stringify(client));
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
    const { LINKEDIN_CLIENT_SECRET: _, ...without } = (await started()) as Record<string, string>;
    const client = of(await examined('linkedin', without), 'client');
    assert.deepEqual([client.verdict, /no public clients/.test(String(client.remedy))], ['fix', true]);
  });

  t('asks for the permissions that the settings name', async () => {
    const env = await started({}, { LINKEDIN_SCOPES: 'openid profile w_member_social a_new_one' });
    const { words, remedy } = of(await examined('linkedin', env), 'scopes');
    assert.match(words, /a_new_one \(since the settings name it\)/);
    assert.ok(!words.includes('w_organization_social'));
    assert.match(String(remedy), /LINKEDIN_SCOPES/);
  });

  t('says when the version ends that is set: a year after its month', async () => {
    const env = await started({}, { LINKEDIN_VERSION: '202603' });
    const at = async (now: string) =>
      of(await examined('linkedin', env, { clock: () => Date.parse(now) }), 'API version').verdict;
    assert.equal(await at('2026-12-01T00:00:00Z'), 'ok');
    assert.equal(await at('2027-01-01T00:00:00Z'), 'warn');
    assert.equal(await at('2027-03-17T00:00:00Z'), 'fix');
    const { words } = of(await examined('linkedin', env), 'API version');
    assert.match(words, /LinkedIn-Version 202603/);
  });

  t('explains a redirect address that the app does not have', async () => {
    const findings = await examined('linkedin', await started({ redirectUri: `${origin}/other` }));
    const { verdict, remedy } = of(findings, 'redirect address');
    assert.equal(verdict, 'fix');
    assert.match(String(remedy), /Authorized redirect URLs/);
  });
});

suite('the doctor of facebook', (t) => {
  let network: FacebookNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (more: Readonly<Record<string, string>> = {}) => {
    network = await startFacebook({ redirectUri });
    return { ...network.env, ...more };
  };

  t('finds nothing to fix in an app that is set up, and says what it cannot tell', async () => {
    const findings = await examined('facebook', await started());
    assert.deepEqual(verdictsOf(findings), {
      ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell', 'API version': 'ok' },
      calls: 'cannot_tell',
    });
    const { remedy } = of(findings, 'redirect address');
    const asked = new URL(/https?:\S+/.exec(String(remedy))?.[0] ?? '');
    assert.deepEqual([asked.pathname, asked.searchParams.get('redirect_uri')], ['/v27.0/dialog/oauth', redirectUri]);
    assert.match(String(remedy), /Valid OAuth Redirect URIs/);
    assert.match(of(findings, 'scopes').words, /pages_manage_engagement \(for first comments and figures of videos\)/);
    assert.ok(!of(findings, 'scopes').words.includes('instagram'), 'it is asked for where the setting names it');
  });

  t('tells a wrong app, a wrong secret and a server that does not answer apart, and shows no secret', async () => {
    for (const more of [{ FACEBOOK_CLIENT_ID: '17' }, { FACEBOOK_CLIENT_SECRET: 'not-the-secret' }]) {
      const findings = await examined('facebook', await started(more));
      const { verdict, remedy } = of(findings, 'client');
      assert.deepEqual([verdict, /Copy the app ID/.test(String(remedy))], ['fix', true], JSON.stringify(findings));
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
    const server = `http://127.0.0.1:${await freePort()}`;
    const silent = of(await examined('facebook', await started({ FACEBOOK_API: server })), 'client');
    assert.match(JSON.stringify(silent), /FACEBOOK_API/);
  });

  t('warns of a version whose end Meta has named', async () => {
    const clock = () => Date.parse('2026-12-01T00:00:00.000Z');
    const findings = await examined('facebook', await started({ FACEBOOK_VERSION: 'v21.0' }), { clock });
    assert.notEqual(of(findings, 'API version').verdict, 'ok');
    assert.match(of(findings, 'API version').words, /2027-01-21/);
  });
});

suite('the doctor of threads', (t) => {
  let network: ThreadsNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (more: Readonly<Record<string, string>> = {}) => {
    network = await startThreads({ redirectUri });
    const { clientId, clientSecret } = network.state.app;
    return {
      ...{ THREADS_API: network.origin, THREADS_AUTHORIZE: `${network.origin}/oauth/authorize` },
      ...{ THREADS_CLIENT_ID: clientId, THREADS_CLIENT_SECRET: clientSecret, ...more },
    };
  };

  t('finds nothing to fix in an app that is set up, and says what it cannot tell', async () => {
    const findings = await examined('threads', await started());
    assert.deepEqual(verdictsOf(findings), {
      ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell', 'API version': 'ok' },
      calls: 'cannot_tell',
    });
    const { remedy } = of(findings, 'redirect address');
    const asked = new URL(/https?:\S+/.exec(String(remedy))?.[0] ?? '');
    assert.equal(asked.searchParams.get('redirect_uri'), redirectUri);
    assert.match(String(remedy), /Redirect Callback URLs/);
    assert.match(of(findings, 'scopes').words, /threads_delete \(to delete the post of `network check`\)/);
    assert.match(of(findings, 'API version').words, /^Threads API v1\.0: no end is announced/);
    // The code that nobody gave was not exchanged for a token.
    assert.deepEqual(
      network?.state.calls.map(({ path }) => path),
      ['/oauth/access_token', '/oauth/authorize'],
    );
  });

  t('tells the ids of the Meta app, a wrong secret and a server that does not answer apart', async () => {
    for (const wrong of [{ THREADS_CLIENT_ID: '17' }, { THREADS_CLIENT_SECRET: 'not-the-secret' }] as Record<
      string,
      string
    >[]) {
      const findings = await examined('threads', await started(wrong));
      const { verdict, remedy } = of(findings, 'client');
      assert.equal(verdict, 'fix', JSON.stringify(findings));
      assert.match(String(remedy), /^Copy the Threads app ID/);
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
    const server = `http://127.0.0.1:${await freePort()}`;
    const silent = of(await examined('threads', await started({ THREADS_API: server })), 'client');
    assert.match(JSON.stringify(silent), /THREADS_API/);
    network?.close();
    const { words } = of(await examined('threads', await started({ THREADS_VERSION: 'v2.0' })), 'API version');
    assert.match(words, /^Threads API v2\.0/);
  });
});

suite('the doctor of instagram', (t) => {
  let network: InstagramNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (...apps: readonly ('ig' | 'fb')[]) => {
    const own = await startInstagram({ redirectUri });
    network = own;
    return Object.assign({}, ...apps.map((one) => own.env[one])) as Record<string, string>;
  };

  t('finds nothing to fix in an app that is set up, and says what it cannot tell', async () => {
    const findings = await examined('instagram', await started('ig'));
    assert.deepEqual(verdictsOf(findings), {
      ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell', 'API version': 'ok' },
      calls: 'cannot_tell',
    });
    const { remedy } = of(findings, 'redirect address');
    const asked = new URL(/https?:\S+/.exec(String(remedy))?.[0] ?? '');
    assert.equal(asked.searchParams.get('redirect_uri'), redirectUri);
    assert.match(String(remedy), /OAuth redirect URIs/);
    assert.match(of(findings, 'scopes').words, /instagram_business_manage_comments \(for first comments\)/);
    assert.match(of(findings, 'API version').words, /^Graph API v27\.0: no end is announced/);
  });

  t(
    'says that accounts come by Facebook where its app has the permissions, and nothing of it where it lacks them',
    async () => {
      const env = await started('fb');
      const findings = await examined('instagram', env);
      assert.match(of(findings, 'login of Facebook').words, /whose app is examined there/);
      assert.ok(!findings.some(({ verdict }) => verdict === 'off'), 'Instagram is offered');
      network?.close();
      const { FACEBOOK_SCOPES: _, ...usual } = await started('fb');
      const without = await examined('instagram', usual);
      assert.equal(of(without, 'app').verdict, 'off');
    },
  );

  t(
    'tells the ids of the Meta app, a wrong secret and a server that does not answer apart, and shows no secret',
    async () => {
      for (const more of [{ INSTAGRAM_CLIENT_ID: '17' }, { INSTAGRAM_CLIENT_SECRET: 'not-the-secret' }]) {
        const findings = await examined('instagram', { ...(await started('ig')), ...more });
        const { verdict, remedy } = of(findings, 'client');
        assert.deepEqual(
          [verdict, /^Copy the Instagram app ID/.test(String(remedy))],
          ['fix', true],
          JSON.stringify(findings),
        );
        assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
        network?.close();
      }
      const server = `http://127.0.0.1:${await freePort()}`;
      const env = { ...(await started('ig')), INSTAGRAM_TOKENS: server };
      assert.match(JSON.stringify(of(await examined('instagram', env), 'client')), /INSTAGRAM_TOKENS/);
    },
  );
});

suite('the doctor of what networks call', (t) => {
  let network: ThreadsNetwork | undefined;
  t.after.each(() => network?.close());
  /** What stands at the address of the installation. */
  const behind = (status: number, type: string, asked: string[] = []): NetworkHttp => ({
    send: async (call, signal) => {
      if (!call.url.startsWith(`${origin}/`)) return http.send(call, signal);
      asked.push(`${call.method} ${call.url}`);
      return { kind: 'answered', status, headers: { 'content-type': type }, body: Buffer.alloc(0) };
    },
  });
  const examinedBehind = async (over: NetworkHttp) => {
    network = await startThreads({ redirectUri });
    const { clientId, clientSecret } = network.state.app;
    const env = {
      ...{ THREADS_API: network.origin, THREADS_AUTHORIZE: `${network.origin}/oauth/authorize` },
      ...{ THREADS_CLIENT_ID: clientId, THREADS_CLIENT_SECRET: clientSecret },
    };
    return of(await examined('threads', env, { http: over }), 'calls');
  };

  t('is right where the api answers, and names the addresses that the console of the network takes', async () => {
    const asked: string[] = [];
    const { verdict, words, remedy } = await examinedBehind(behind(404, 'application/problem+json', asked));
    const [uninstall, remove] = [`${origin}/network/threads/deauthorize`, `${origin}/network/threads/delete`];
    assert.deepEqual(asked, [`POST ${uninstall}`, `POST ${remove}`]);
    assert.deepEqual([verdict, remedy], ['ok', null]);
    assert.ok(words.includes(`${uninstall} (Uninstall Callback URL), ${remove} (Delete Callback URL)`), words);
    assert.match(words, /App Dashboard/);
  });

  t('says that a proxy asks for a login, or knows no such path', async () => {
    for (const [status, type] of [
      [302, 'text/html'],
      [404, 'text/html'],
      [200, 'application/problem+json'],
    ] as const) {
      const { verdict, remedy } = await examinedBehind(behind(status, type));
      assert.deepEqual([verdict, /pass \/network\/ on/.test(String(remedy))], ['fix', true], `${status} ${type}`);
      network?.close();
    }
  });
});

suite('the doctor of files that a network fetches', (t) => {
  const token = 'MrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT';
  const proof = `tiktok-developers-site-verification=${token}`;
  const examinedAt = async (over: Partial<DoctorOptions>, shown: Readonly<Record<string, string>>) => {
    const asked: string[] = [];
    const shows: NetworkHttp = {
      send: async (call, signal) => {
        if (!call.url.includes('tiktok')) return http.send(call, signal);
        asked.push(call.url);
        const text = shown[call.url];
        const [status, body] = text === undefined ? [404, 'none'] : [200, text];
        return { kind: 'answered', status, headers: {}, body: Buffer.from(body) };
      },
    };
    const findings = await examined('tiktok', { TIKTOK_SITE_PROOF: token }, { http: shows, ...over });
    return { asked, all: findings, one: of(findings, 'media addresses') };
  };

  t('asks for the proof where the addresses of files begin, and names that address', async () => {
    const files = 'https://postline.test/api';
    const url = `${files}/tiktok${token}.txt`;
    const { asked, all, one } = await examinedAt({ files }, { [url]: `${proof}\n` });
    assert.deepEqual([asked, one.verdict, one.remedy], [[url], 'ok', null]);
    assert.ok(one.words.includes(`${files}/`), one.words);
    assert.equal(of(all, 'app').verdict, 'off', 'the proof may be there before the app');
    for (const other of [{}, { [url]: proof.slice(0, -1) }, { [url]: `<html>${proof}</html>` }]) {
      assert.equal((await examinedAt({ files }, other)).one.verdict, 'fix');
    }
  });

  t('says what to do where no network reaches them', async () => {
    for (const files of ['http://postline.test', 'https://10.0.0.7:9000', null]) {
      const found = await examinedAt({ files }, {});
      assert.deepEqual([found.one.verdict, found.asked], ['fix', []], String(files));
    }
    assert.deepEqual(verdictsOf(await examined('tiktok', {})), { app: 'off', 'API version': 'ok' });
  });
});

suite('the doctor of pinterest', (t) => {
  let network: PinterestNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (more: Readonly<Record<string, string>> = {}) => {
    network = await startPinterest({ redirectUri });
    const { clientId, clientSecret } = network.state.app;
    return {
      ...{ PINTEREST_API: network.api, PINTEREST_AUTHORIZE: network.authorize },
      ...{ PINTEREST_CLIENT_ID: clientId, PINTEREST_CLIENT_SECRET: clientSecret, ...more },
    };
  };

  t('takes the client, and gives the page of consent to a person who is signed in', async () => {
    const findings = await examined('pinterest', await started());
    assert.deepEqual(verdictsOf(findings), {
      ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell', 'API version': 'ok' },
    });
    const { remedy } = of(findings, 'redirect address');
    const asked = new URL(/https?:\S+/.exec(String(remedy))?.[0] ?? '');
    assert.equal(`${asked.origin}${asked.pathname}`, network?.authorize);
    assert.equal(asked.searchParams.get('redirect_uri'), redirectUri);
    assert.match(of(findings, 'scopes').words, /pins:write \(to publish\)/);
    // As a person opens it who is signed in there.
    const person = network?.person();
    asked.searchParams.set('as', person?.id ?? '');
    assert.equal((await fetch(asked, { redirect: 'manual' })).status, 302);
  });

  t('tells a wrong client from a made-up code, and shows no secret', async () => {
    for (const wrong of [{ PINTEREST_CLIENT_SECRET: 'not-the-secret' }, { PINTEREST_CLIENT_ID: '1' }]) {
      const findings = await examined('pinterest', await started(wrong));
      const { verdict, words, remedy } = of(findings, 'client');
      assert.equal(verdict, 'fix');
      assert.match(words, /does not take the client: .Authentication failed\./);
      assert.match(String(remedy), /App secret key/);
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
    const { PINTEREST_CLIENT_SECRET: _, ...open } = await started();
    assert.match(String(of(await examined('pinterest', open), 'client').remedy), /set PINTEREST_CLIENT_SECRET/);
  });

  t('says how an operator gets an app', async () => {
    const { verdict, remedy } = of(await examined('pinterest', {}), 'app');
    assert.equal(verdict, 'off');
    assert.match(String(remedy), /developers\.pinterest\.com.*PINTEREST_CLIENT_ID and PINTEREST_CLIENT_SECRET/);
  });
});

suite('the doctor of tiktok', (t) => {
  let network: TikTokNetwork | undefined;
  t.after.each(() => network?.close());
  const started = async (more: Readonly<Record<string, string>> = {}) => {
    network = await startTikTok({ redirectUri });
    const { clientKey, clientSecret } = network.state.app;
    return {
      ...{ TIKTOK_API: network.api, TIKTOK_AUTHORIZE: network.authorize },
      ...{ TIKTOK_CLIENT_ID: clientKey, TIKTOK_CLIENT_SECRET: clientSecret, ...more },
    };
  };
  const examinedHere = async (env: Readonly<Record<string, string>>) =>
    examined('tiktok', env, {
      http: {
        send: async (call, signal) =>
          call.url === `${origin}/network/tiktok`
            ? {
                kind: 'answered',
                status: 404,
                headers: { 'content-type': 'application/problem+json' },
                body: Buffer.alloc(0),
              }
            : http.send(call, signal),
      },
    });

  t(
    'takes the client, names the address of webhooks, and gives the page of consent to a person who is signed in',
    async () => {
      const findings = await examinedHere(await started());
      assert.deepEqual(verdictsOf(findings), {
        ...{ address: 'ok', client: 'ok', 'redirect address': 'cannot_tell', scopes: 'cannot_tell' },
        ...{ calls: 'ok', 'API version': 'ok' },
      });
      const asked = new URL(/https?:\S+/.exec(String(of(findings, 'redirect address').remedy))?.[0] ?? '');
      assert.equal(`${asked.origin}${asked.pathname}`, network?.authorize);
      assert.match(of(findings, 'scopes').words, /video\.publish \(to publish, and to ask what the account may post\)/);
      assert.match(of(findings, 'calls').words, /\/network\/tiktok \(Callback URL of Webhooks\)/);
      // As a person opens it who is signed in there.
      asked.searchParams.set('as', network?.person().id ?? '');
      assert.equal((await fetch(asked, { redirect: 'manual' })).status, 302);
    },
  );

  t('tells a wrong client from a made-up code, and shows no secret', async () => {
    for (const wrong of [{ TIKTOK_CLIENT_SECRET: 'not-the-secret' }, { TIKTOK_CLIENT_ID: 'another' }]) {
      const findings = await examinedHere(await started(wrong));
      const { verdict, words, remedy } = of(findings, 'client');
      assert.equal(verdict, 'fix');
      assert.match(words, /Client key or secret is incorrect/);
      assert.match(String(remedy), /Client secret anew/);
      assert.ok(!JSON.stringify(findings).includes('not-the-secret'));
      network?.close();
    }
    const { TIKTOK_CLIENT_SECRET: _, ...open } = await started();
    assert.match(String(of(await examinedHere(open), 'client').remedy), /set TIKTOK_CLIENT_SECRET/);
  });

  t('says how an operator gets an app', async () => {
    const { verdict, remedy } = of(await examined('tiktok', {}), 'app');
    assert.equal(verdict, 'off');
    assert.match(String(remedy), /developers\.tiktok\.com.*TIKTOK_CLIENT_ID and TIKTOK_CLIENT_SECRET/);
  });
});

suite('the doctor of telegram', (t) => {
  let network: TelegramSimulator;
  t.before(async () => {
    network = await TelegramSimulator.start();
  });
  t.after(() => network.close());
  const examinedBot = (token: string) => examined('telegram', { TELEGRAM_API: network.origin }, { bot: token });

  t('finds nothing to fix in a bot that listens', async () => {
    const bot = network.bot();
    const findings = await examinedBot(bot.token);
    assert.deepEqual(verdictsOf(findings), {
      ...{ bot: 'ok', groups: 'ok', 'codes in groups': 'ok', updates: 'ok', 'API version': 'ok' },
    });
    assert.match(of(findings, 'bot').words, new RegExp(`@${bot.username}`));
    assert.ok(!JSON.stringify(findings).includes(bot.token));
    assert.ok(network.calls.every(({ method }) => method !== 'getUpdates'));
  });

  t('explains a webhook that takes the updates, and a bot that groups cannot add', async () => {
    const bot = network.bot();
    bot.hasWebhook = true;
    bot.joinsGroups = false;
    const findings = await examinedBot(bot.token);
    assert.equal(of(findings, 'updates').verdict, 'fix');
    assert.match(of(findings, 'updates').words, /others\.example/);
    assert.ok(!JSON.stringify(findings).includes('secret-path'));
    assert.equal(of(findings, 'groups').verdict, 'fix');
  });

  t('explains a token that Telegram no longer takes', async () => {
    const bot = network.bot();
    bot.isRevoked = true;
    assert.equal(of(await examinedBot(bot.token), 'bot').verdict, 'fix');
    assert.equal(of(await examined('telegram', {}), 'bot').verdict, 'off');
    network.arm('getMe', { kind: 'refuse', code: 502, description: 'Bad Gateway', parameters: {} });
    assert.equal(of(await examinedBot(network.bot().token), 'bot').verdict, 'cannot_tell');
  });
});

suite('the doctor of bluesky', { timeoutMs: 60_000 }, (t) => {
  if ('missing' in opened) t.skip('speaks with the real server', opened.missing);
  else {
    const { pds } = opened;
    t('speaks with the real server and its directory', async () => {
      const findings = await examined('bluesky', { BLUESKY_RESOLVER: pds.service, BLUESKY_DIRECTORY: pds.directory });
      assert.equal(of(findings, 'resolver of handles').verdict, 'ok', JSON.stringify(findings));
      assert.equal(of(findings, 'directory of identities').verdict, 'ok', JSON.stringify(findings));
      assert.equal(of(findings, 'app view').verdict, 'fix');
      assert.match(String(of(findings, 'app view').remedy), /BLUESKY_APP_VIEW/);
    });
  }

  t('tells another kind of server from one that is down', async () => {
    let status = 200;
    const server: Server = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': 'text/html' }).end('<!doctype html>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { BLUESKY_RESOLVER: page, BLUESKY_DIRECTORY: page, BLUESKY_APP_VIEW: page };
    try {
      status = 404;
      const wrong = await examined('bluesky', env);
      for (const about of ['resolver of handles', 'directory of identities', 'app view']) {
        assert.equal(of(wrong, about).verdict, 'fix', about);
      }
      status = 503;
      const down = await examined('bluesky', env);
      assert.ok(
        down.every(({ verdict, about }) => ['API version', 'client'].includes(about) || verdict === 'cannot_tell'),
      );
    } finally {
      server.close();
    }
  });
});

const key = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }), kid: '1' };
const oauthKeys = { BLUESKY_OAUTH_KEYS: JSON.stringify(key) };

suite('the doctor of our client of bluesky', (t) => {
  /** What browsers and servers find at the address of the installation. */
  const shows = (documentOf: (path: string) => unknown): NetworkHttp => ({
    send: async (call, signal) => {
      if (!call.url.startsWith(origin)) return http.send(call, signal);
      const document = documentOf(call.url.slice(`${origin}/connect/`.length));
      const body = Buffer.from(JSON.stringify(document ?? {}));
      return { kind: 'answered', status: document === undefined ? 404 : 200, headers: {}, body };
    },
  });
  const examinedWith = async (
    over: Parameters<typeof examined>[2],
    env: Readonly<Record<string, string>> = oauthKeys,
  ) => of(await examined('bluesky', env, over), 'client');

  t('is off without a key, and works where servers can read its documents', async () => {
    assert.equal((await examinedWith({}, {})).verdict, 'off');
    const ours = documentsOf(origin, [key]);
    const good = await examinedWith({ http: shows((path) => ours[path]) });
    assert.deepEqual([good.verdict, good.words.includes(`${origin}/connect/client-metadata.json`)], ['ok', true]);
  });

  t('explains an address that servers refuse, and documents of another installation', async () => {
    assert.match((await examinedWith({ origin: null })).remedy ?? '', /BASE_URL/);
    const plain = await examinedWith({ origin: 'http://postline.test' });
    assert.deepEqual([plain.verdict, /https/.test(plain.words)], ['fix', true]);
    assert.equal((await examinedWith({ origin: 'http://127.0.0.1:8080' })).verdict, 'warn');
    for (const documents of [
      documentsOf('https://people.test', [key]),
      { ...documentsOf(origin, [key]), 'jwks.json': { keys: [] } },
      {},
    ]) {
      const wrong = await examinedWith({ http: shows((path) => (documents as Record<string, unknown>)[path]) });
      assert.deepEqual([wrong.verdict, /BLUESKY_OAUTH_KEYS/.test(wrong.remedy ?? '')], ['fix', true], wrong.words);
      assert.ok(!JSON.stringify(wrong).includes(String(key.d)));
    }
  });
});

suite('the doctor of all networks', (t) => {
  t('has an examination and a version of every network with an adapter, and of no other', async () => {
    const config = readConfig({ ...(await nowhere()), ...clientIds });
    // Nothing is connected, so no store is asked.
    const unused = {} as LiveStores;
    const live = Object.keys(liveNetworks({ http, clock: Date.now, config, stores: unused }).adapters);
    const all = await examineNetworks(
      { http, ...{ clock: Date.now, config, origin, files: origin } },
      AbortSignal.timeout(20_000),
    );
    assert.deepEqual(
      all.map(({ network }) => network),
      [...platforms],
    );
    const built = all.flatMap(({ network, findings }) => (findings === null ? [] : [network]));
    assert.deepEqual(built.toSorted(), live.toSorted());
    assert.deepEqual(Object.keys(apiVersions).toSorted(), live.toSorted());
    for (const { findings } of all) {
      for (const { verdict, remedy } of findings ?? []) {
        assert.equal(remedy === null, verdict === 'ok', `${verdict} ${remedy}`);
      }
    }
  });

  t('ends where no network answers', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const config = readConfig({
      ...{ BLUESKY_RESOLVER: server, BLUESKY_DIRECTORY: server, BLUESKY_APP_VIEW: server, ...oauthKeys },
      ...{ ...clientIds, ...appsAt(server), TELEGRAM_API: server, TELEGRAM_BOT_TOKEN: `1234567:${'a'.repeat(35)}` },
    });
    const stop = new AbortController();
    silent.on('request', () => stop.abort());
    const all = await examineNetworks({ http, ...{ clock: Date.now, config, origin, files: origin } }, stop.signal);
    assert.ok(all.flatMap(({ findings }) => findings ?? []).every(({ verdict }) => verdict !== 'off'));
    silent.closeAllConnections();
    silent.close();
  });
});
