import type {
  Credential,
  CredentialOwner,
  CredentialStore,
  NewCredential,
  Refresh,
  Refreshed,
} from '#contracts/ports/credentials.ts';
import type { Platform } from '#schemas/common.ts';

/** One consent is for both. */
const ofMeta: readonly Platform[] = ['facebook', 'instagram'];

interface Kept {
  readonly owner: CredentialOwner;
  readonly credential: Credential & Pick<NewCredential, 'grant'>;
}

/** A store of credentials for tests of adapters: one process, nothing kept. */
export class MemoryCredentials implements CredentialStore {
  readonly kept = new Map<string, Kept>();
  readonly #refreshing = new Map<string, Promise<Refreshed>>();

  async keep(owner: CredentialOwner, credential: NewCredential): Promise<number> {
    const version = (this.kept.get(owner.accountId)?.credential.version ?? 0) + 1;
    this.kept.set(owner.accountId, { owner, credential: { ...credential, version } });
    return version;
  }

  async read(accountId: string): Promise<Credential | null> {
    return this.kept.get(accountId)?.credential ?? null;
  }

  async refresh(
    accountId: string,
    seen: number,
    ask: (former: Credential, signal: AbortSignal) => Promise<Refresh>,
    signal: AbortSignal,
  ): Promise<Refreshed> {
    const running = this.#refreshing.get(accountId);
    if (running !== undefined) return running;
    const refreshing = this.#refresh(accountId, seen, ask, signal).finally(() => this.#refreshing.delete(accountId));
    this.#refreshing.set(accountId, refreshing);
    return refreshing;
  }

  async #refresh(
    accountId: string,
    seen: number,
    ask: (former: Credential, signal: AbortSignal) => Promise<Refresh>,
    signal: AbortSignal,
  ): Promise<Refreshed> {
    const kept = this.kept.get(accountId);
    if (kept === undefined) return { kind: 'missing' };
    if (kept.credential.version > seen) return { kind: 'current', credential: kept.credential };
    const answer = await ask(kept.credential, signal);
    if (answer.kind === 'refused')
      return { kind: 'lapsed', version: kept.credential.version, reason: answer.reason, isLost: false };
    if (answer.kind === 'unavailable') return answer;
    const secret = { ...kept.credential.secret, ...answer.credential.secret };
    await this.keep(kept.owner, { ...answer.credential, secret });
    return { kind: 'current', credential: this.kept.get(accountId)?.credential as Credential };
  }

  async destroy(accountId: string, version?: number): Promise<void> {
    const kept = this.kept.get(accountId)?.credential.version;
    if (version === undefined || kept === version) this.kept.delete(accountId);
  }

  async leave(accountId: string, version: number): Promise<'left' | 'last'> {
    const mine = this.kept.get(accountId);
    if (mine?.credential.version !== version) return 'left';
    const networks = ofMeta.includes(mine.owner.platform) ? ofMeta : [mine.owner.platform];
    const { grant } = mine.credential;
    const isShared =
      grant !== undefined &&
      [...this.kept.values()].some(
        (one) => one !== mine && networks.includes(one.owner.platform) && one.credential.grant === grant,
      );
    if (isShared) this.kept.delete(accountId);
    return isShared ? 'left' : 'last';
  }

  async destroyOfClient(clientId: string): Promise<void> {
    for (const [id, { owner }] of this.kept) if (owner.clientId === clientId) this.kept.delete(id);
  }

  async ending(): Promise<readonly never[]> {
    return [];
  }

  async acknowledgeLapse(): Promise<void> {}
}
