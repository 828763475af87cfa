import { ok, throws } from 'node:assert/strict';
import { NotAllowed } from '#runtime/egress/guard.ts';
import { type GuardSettings, guardOf } from '#runtime/egress/own-hosts.ts';
import { suite } from '#test/support/suite.ts';

suite('the hosts of this installation', (t) => {
  const settings: GuardSettings = {
    privateTargets: [],
    baseUrl: 'https://api.example.com/v1',
    consoleUrl: 'https://console.example.com',
    authUrl: 'https://auth.example.com',
    mcpUrl: 'https://mcp.example.com/mcp',
    host: '0.0.0.0',
    port: 8080,
  };
  const ours = (url: string, ...given: Parameters<typeof guardOf>): void =>
    throws(
      () => guardOf(...given).checkUrl(url),
      (error) => error instanceof NotAllowed && /this service/.test(error.message),
    );

  t('are refused by the guard of each process: a guest of Bluesky may name none of them as a server', () => {
    for (const name of ['api', 'console', 'auth', 'mcp']) {
      ours(`https://${name}.example.com/xrpc/com.atproto.server.createSession`, settings);
      // Also where an operator lets every target be private.
      ours(`https://${name}.example.com/`, { ...settings, privateTargets: ['*'] });
    }
    ok(guardOf(settings).checkUrl('https://pds.example.com/'));
  });

  t('are the port of this machine where targets may be private', () => {
    const local = { ...settings, privateTargets: ['*'], baseUrl: null, consoleUrl: null, authUrl: null, mcpUrl: null };
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) ours(`http://${host}:8080/v1`, local);
    ours('http://[fd00::1]:8080/', { ...local, host: 'fd00::1' });
    ok(guardOf(local).checkUrl('http://127.0.0.1:2583/'));
  });

  t('are those that a process serves, too', () => {
    ours('https://late.example.com/', settings, () => ['https://late.example.com/v1']);
  });
});
