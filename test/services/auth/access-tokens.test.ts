import assert from 'node:assert/strict';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { exportJWK, type JWTPayload, SignJWT } from 'jose';
import type { Pool } from 'pg';
import { openPool } from '#infra/postgres/pool.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { AccessTokenError, AccessTokens, isAccessToken } from '#services/auth/access-tokens.ts';
import { rotateSigningKey, SigningKeys } from '#services/auth/oauth/keys.ts';
import { secretKey } from '#test/support/domain.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

const issuer = 'https://auth.example';
const api = 'https://api.example/v1';
const mcp = 'https://mcp.example/mcp';

suite('access tokens', (t) => {
  let db: Awaited<ReturnType<typeof preparedDatabase>>;
  let pool: Pool;
  let secrets: Secrets;
  let now = Date.parse('2026-11-01T12:00:00.000Z');
  let queries = 0;
  t.before(async () => {
    db = await preparedDatabase();
    pool = openPool({ url: db.url, max: 3, name: 'test' });
    secrets = new Secrets(secretKey());
    await new SigningKeys(pool, secrets).current();
  });
  t.after(async () => {
    await pool.end();
    await db.drop();
  });

  const counted = (): Pool =>
    new Proxy(pool, {
      get: (target, name) => {
        if (name === 'query') queries += 1;
        const value = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  const opened = () =>
    new AccessTokens(
      counted(),
      () => issuer,
      () => now,
    );
  const claims = (more: Readonly<Record<string, unknown>> = {}): JWTPayload => ({
    iss: issuer,
    aud: api,
    sub: randomUUID(),
    client_id: 'an app',
    scope: 'posts.read media.read',
    jti: randomUUID(),
    gid: randomUUID(),
    iat: Math.floor(now / 1_000),
    exp: Math.floor(now / 1_000) + 900,
    ...more,
  });
  const signed = async (
    payload: JWTPayload,
    header: Readonly<Record<string, unknown>> = {},
    key?: Awaited<ReturnType<typeof signer>>,
  ) => {
    const { kid, ...jwk } = key ?? (await signer());
    const { importJWK } = await import('jose');
    const imported = await importJWK(jwk, String(header.alg ?? 'ES256'));
    return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid, ...header }).sign(imported);
  };
  const signer = async () => {
    const [key] = await new SigningKeys(pool, secrets).current();
    if (key === undefined) throw new Error('no key');
    return { kty: 'EC', crv: 'P-256', x: key.x ?? '', y: key.y ?? '', d: key.d ?? '', kid: key.kid };
  };
  const codeOf = async (tokens: AccessTokens, token: string, audience = api): Promise<string> => {
    try {
      await tokens.verify(token, audience);
      return 'good';
    } catch (error) {
      assert.ok(error instanceof AccessTokenError, String(error));
      return error.code;
    }
  };

  t('says who acts by which grant, and for whom it is', async () => {
    const payload = claims();
    const found = await opened().verify(await signed(payload), api);
    assert.deepEqual(found, {
      grantId: payload.gid,
      personId: payload.sub,
      clientId: 'an app',
      scopes: ['posts.read', 'media.read'],
      audience: api,
      tokenId: payload.jti,
      expiresAt: (payload.exp ?? 0) * 1_000,
    });
    assert.deepEqual((await opened().verify(await signed(claims({ scope: undefined })), api)).scopes, []);
  });

  t('a token of another resource has an error of its own; a slash at the end is the same resource', async () => {
    const tokens = opened();
    for (const [aud, audience, code] of [
      [api, api, 'good'],
      [api, `${api}/`, 'good'],
      [`${api}/`, api, 'good'],
      [api, mcp, 'wrong_audience'],
      [mcp, api, 'wrong_audience'],
      [api, `${api}x`, 'wrong_audience'],
      [api, api.toUpperCase(), 'wrong_audience'],
    ] as const) {
      const token = await signed(claims({ aud }));
      for (const time of ['first', 'again'])
        assert.equal(await codeOf(tokens, token, audience), code, `${aud} ${audience} ${time}`);
    }
    assert.equal(await codeOf(tokens, await signed(claims({ aud: [api, mcp] }))), 'invalid_token');
  });

  t('expires by the injected clock, with at most 15 s of grace, also when it is remembered', async () => {
    const tokens = opened();
    const token = await signed(claims());
    assert.equal(await codeOf(tokens, token), 'good');
    const began = now;
    now = began + 904_000;
    assert.equal(await codeOf(tokens, token), 'good');
    now = began + 915_000;
    assert.deepEqual([await codeOf(tokens, token), await codeOf(opened(), token)], ['token_expired', 'token_expired']);
    now = began;
    const early = await signed(claims({ nbf: Math.floor(now / 1_000) + 60 }));
    assert.equal(await codeOf(tokens, early), 'invalid_token');
  });

  t('refuses what we did not sign as an access token', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const own = await signer();
    const stranger = { ...(await exportJWK(privateKey)), kid: own.kid } as typeof own;
    const [header = '', body = '', mac = ''] = (await signed(claims())).split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url');
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(publicKey)));
    const symmetric = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: own.kid })
      .sign(secret);
    const other = Buffer.from(JSON.stringify(claims())).toString('base64url');
    const cases: Readonly<Record<string, string>> = {
      'another key under our kid': await signed(claims(), {}, stranger),
      'an unknown kid': await signed(claims(), { kid: 'unknown' }),
      'no kid': await signed(claims(), { kid: undefined }),
      'another typ': await signed(claims(), { typ: 'JWT' }),
      'no typ': await signed(claims(), { typ: undefined }),
      'another issuer': await signed(claims({ iss: 'https://evil.example' })),
      'no issuer': await signed(claims({ iss: undefined })),
      'no grant': await signed(claims({ gid: undefined })),
      'a grant that is no id': await signed(claims({ gid: 'x' })),
      'no subject': await signed(claims({ sub: undefined })),
      'no expiry': await signed(claims({ exp: undefined })),
      'no jti': await signed(claims({ jti: undefined })),
      'scope of another type': await signed(claims({ scope: ['posts.read'] })),
      'alg none': `${none}.${body}.`,
      'no signature': `${header}.${body}.`,
      'another body': `${header}.${other}.${mac}`,
      'another alg': symmetric,
      'too long': `${header}.${'A'.repeat(5_000)}.${mac}`,
      'four parts': `${header}.${body}.${mac}.${mac}`,
      'an API key': `sk_live_${'x'.repeat(43)}`,
      empty: '',
    };
    const tokens = opened();
    for (const [name, token] of Object.entries(cases)) {
      assert.equal(await codeOf(tokens, token), 'invalid_token', name);
      assert.equal(await codeOf(tokens, token), 'invalid_token', `${name} again`);
    }
    assert.deepEqual(
      [isAccessToken(`${header}.${body}.${mac}`), isAccessToken('sess_v1.x.y'), isAccessToken('a.b.c')],
      [true, false, false],
    );
  });

  t('a token of a new key makes it read the keys, at most once a second', async () => {
    const tokens = opened();
    await codeOf(tokens, await signed(claims()));
    const before = queries;
    for (let at = 0; at < 20; at += 1) await codeOf(tokens, await signed(claims(), { kid: `unknown ${at}` }));
    assert.ok(queries - before <= 1, `${queries - before} queries`);
    await rotateSigningKey(pool, secrets);
    await pool.query(`update auth.signing_keys set signs_at = now() - interval '1 minute' where signs_at > now()`);
    assert.equal(await codeOf(opened(), await signed(claims())), 'good');
  });

  t('the cost of a first and of a repeated check', async () => {
    const tokens = opened();
    const many = await Promise.all(Array.from({ length: 400 }, async () => signed(claims())));
    await tokens.verify(many[0] ?? '', api);
    const timed = async (): Promise<number> => {
      const began = performance.now();
      for (const token of many) await tokens.verify(token, api);
      return (performance.now() - began) / many.length;
    };
    const [first, again] = [await timed(), await timed()];
    process.stdout.write(`  first ${first.toFixed(3)} ms, again ${again.toFixed(4)} ms\n`);
    assert.ok(again < 0.15, `a repeated check took ${again} ms`);
  });
});
