/** `network check` of a post with a file and settings, as an operator types it, over a strict Pinterest. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { readConfig } from '#runtime/process/config.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Admin } from '#services/admin/context.ts';
import { checkNetwork } from '#services/admin/network-check.ts';
import { readCommand } from '#services/admin/usage.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import {
  type Board,
  type Person,
  type PinterestNetwork,
  startPinterest,
} from '#test/support/networks/pinterest/index.ts';
import { type HeldFiles, heldFiles, pngOf } from '#test/support/networks/pinterest/world.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check with a file', { timeoutMs: 120_000 }, (t) => {
  let network: PinterestNetwork;
  let adapters: Adapters;
  let env: Record<string, string> & { SECRET_KEY: string };
  let person: Person;
  let board: Board;
  let operator: Operator;
  let files: HeldFiles;
  const id = randomUUID();

  t.before(async () => {
    files = heldFiles();
    network = await startPinterest();
    person = network.person();
    board = network.board(person);
    const { url } = await preparedDatabase();
    const { clientId, clientSecret } = network.state.app;
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*', PINTEREST_API: network.api },
      ...{ PINTEREST_CLIENT_ID: clientId, PINTEREST_CLIENT_SECRET: clientSecret },
    };
    ({ adapters, operator } = await openOperator(env));
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'pinterest' as const };
    const { username, id: externalId } = person;
    const connect = {
      ...({ type: 'Connect', clientId: owner.clientId, platform: 'pinterest', externalId, network: 'live' } as const),
      ...{ inviteId: null, username, displayName: null, avatarUrl: null, scopes: [], expiresAt: null, timezone: null },
    };
    const { positions } = operator;
    await execute(operator.store, account, id, connect, contextOf(operator, owner.workspaceId), { positions });
    const secret = { ...network.grant(person), accessUntil: new Date(Date.now() + 86_400_000).toISOString() };
    await adapters.credentials.keep({ accountId: id, ...owner }, { secret, expiresAt: null });
  });
  t.after(async () => {
    await adapters?.close();
    files?.remove();
    network?.close();
  });

  const typed = (...args: readonly string[]) =>
    run('services/admin/main.ts', { env, args: ['network', 'check', 'pinterest', '--account', id, '--yes', ...args] });
  /** The same without a process of its own. */
  const asked = (args: readonly string[]) => {
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const config = { ...readConfig(env), boundaryDeadlineMs: 500 };
    const live = liveNetworks({ stores: adapters, http, clock: Date.now, config });
    const given = readCommand(['network', 'check', 'pinterest', '--account', id, '--yes', ...args])?.given;
    const admin: Partial<Admin> = {
      ...{ store: operator.store, operator, publishing: new PublishingHold(adapters.pool, 'on') },
      ...{ adapterOf: (platform) => live.adapters[platform] ?? null, note: () => undefined },
    };
    assert.ok(given !== undefined);
    return checkNetwork(admin as Admin, given);
  };
  const saved = async (name: string): Promise<string> => files.save(name, pngOf(600, 900));

  t('publishes the file on the board that is named, and deletes it', async () => {
    const picture = await saved('autumn.PNG');
    const { code, output } = await typed('--media', picture, '--set', `boardId=${board.id}&title=A%26B`);
    assert.equal(code, 0, output);
    const [pin, ...others] = network.state.pins;
    assert.ok(pin !== undefined && others.length === 0);
    assert.deepEqual(
      [pin.boardId, pin.body.title, pin.kind, pin.pictures],
      [board.id, 'A&B', 'image', [pngOf(600, 900)]],
    );
    assert.ok(network.state.deleted.has(pin.id));
    assert.match(output, new RegExp(`Published: https://www\\.pinterest\\.com/pin/${pin.id}/\\ndeleted\\n`));
  });

  t('says what the network needs before anything is sent', async () => {
    const calls = network.state.calls.length;
    const picture = await saved('b.png');
    const set = ['--set', `boardId=${board.id}`];
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [[], /Pinterest needs the override boardId\. Settings go with --set/],
      [set, /takes no post without media\. Settings go with --set, a file with --media/],
      [['--media', picture, '--set', 'board=1'], /--set takes boardId, title, link, aiGenerated for pinterest/],
      [['--media', picture, '--set', `boardId=1&link=here`], /link must be an absolute/],
      [['--media', 'picture.heic', ...set], /ends with one of \.jpg/],
      [['--media', `${picture}.png`, ...set], /cannot be read/],
      [['--media', await saved('c.pdf'), ...set], /Pinterest takes no document/],
    ];
    for (const [args, words] of cases) {
      const ended = await asked(args).then(
        () => assert.fail('it was published'),
        (error: Error) => error,
      );
      assert.ok(ended instanceof UsageError && words.test(ended.message), `${args.join(' ')}\n${ended}`);
    }
    assert.equal(network.state.calls.length, calls);
  });
});
