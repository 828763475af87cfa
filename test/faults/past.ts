import { isConflict } from '#contracts/ports/event-store.ts';
import { targetIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { workspace } from '#domain/workspace.ts';
import { view } from '#projections/shapes.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Platform } from '#schemas/common.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { planned, postBody } from '#test/support/samples.ts';
import type { Random } from '#test/support/seed.ts';
import { until } from '#test/support/until.ts';
import { insist } from './insist.ts';

/** What processes that run for minutes never come to: a post that was published a day ago and is recycled daily. */

export interface Account {
  readonly id: string;
  readonly clientId: string;
  readonly platform: Platform;
}

const dayMs = 86_400_000;
/** Begins the id that the network gave a post before the world began: its ledger does not have it. */
export const longAgo = 'long-ago-';

/** As `execute` of a command that is stored already, for one whose answer was lost. */
const once = async (append: () => Promise<unknown>): Promise<void> => {
  await insist(async () => {
    await append().catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    });
  });
};

export class Past {
  readonly #operator: Operator;
  readonly #workspaceId: string;
  readonly #random: Random;
  readonly #keyId: string;

  /** @param keyId of the key that sets the recycling */
  constructor(operator: Operator, workspaceId: string, keyId: string, random: Random) {
    this.#operator = operator;
    this.#workspaceId = workspaceId;
    this.#keyId = keyId;
    this.#random = random;
  }

  /** Its only copy is due in a moment. */
  readonly recycled = async ({ id: accountId, clientId, platform }: Account, content: string): Promise<void> => {
    const { store } = this.#operator;
    const at = Date.now() - dayMs + this.#random.int(500, 4_000);
    const operator = { ...this.#operator, clock: () => at };
    const context = contextOf(operator, this.#workspaceId);
    const dueAt = new Date(at).toISOString();
    const postId = uuidv7();
    const targetId = targetIdOf(postId, accountId, 1);
    const one = planned({ targetId, accountId, clientId, platform, dueAt });
    const selection = { mode: 'accounts', clientId, platforms: null } as const;
    const { commandId } = context;
    const setBy = { type: 'apikey', id: this.#keyId } as const;
    const body = postBody({ content, targetSelection: { ...selection, accountIds: [accountId] } });
    const plan = { number: 1, targets: [one] };
    const schedule = { type: 'Schedule', commandId, clientId, createdBy: setBy, body, plan } as const;
    await once(() => execute(store, post, postId, schedule, context));
    const claim = { attempt: 1, takeover: 0 };
    const published: readonly TargetEvent[] = [
      { type: 'TargetScheduled', data: { ...one, postId, postRevision: 0 } },
      { type: 'TargetPublishStarted', data: claim },
      {
        type: 'TargetPublished',
        data: { ...claim, externalId: `${longAgo}${postId}`, permalink: null, publishedAt: dueAt },
      },
    ];
    // Where the sweeper has created the target before, it is published now, like any other.
    await once(() => store.append(`target-${targetId}`, -1, published, context, postId));
    const recycle = { type: 'SetRecycle', enabled: true, everyDays: 1, times: 1, until: null } as const;
    await once(() =>
      execute(
        store,
        post,
        postId,
        { ...recycle, setBy, needsApproval: false, next: null },
        contextOf(operator, this.#workspaceId),
      ),
    );
  };

  /**
   * From now on each account of the workspace waits a minute between two posts. A rule is in force once the read model shows it,
   * as the command of an operator waits for: it is then set a second time, which says so to those who compare.
   */
  static async pace(operator: Operator, workspaceId: string): Promise<void> {
    const { store, pool } = operator;
    const set = async (perDay: number | null): Promise<void> => {
      const rule = { platform: null, minIntervalMinutes: 1, perDay };
      await insist(() =>
        execute(store, workspace, workspaceId, { type: 'SetCadence', rule }, contextOf(operator, workspaceId)),
      );
    };
    await set(null);
    const text = `select 1 from ${view('workspaces')} as workspaces where id = $1 and cadence is not null`;
    const isShown = async () => (await insist(() => pool.query(text, [workspaceId]))).rows.length > 0;
    await until('the read model shows the rule', isShown, { withinMs: 90_000 });
    await set(1_000);
  }
}
