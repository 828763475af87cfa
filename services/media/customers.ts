import { workspace } from '#domain/workspace.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';

/** Workspaces in the cache. */
const maxKnown = 10_000;

/** Finds the customer of a workspace, whose share its work counts against: for a sandbox twin the live workspace. */
export class Customers {
  readonly #store: DomainStore;
  readonly #known = new Map<string, string>();

  constructor(store: DomainStore) {
    this.#store = store;
  }

  async of(workspaceId: string): Promise<string> {
    const known = this.#known.get(workspaceId);
    if (known !== undefined) return known;
    let twinOf: string | null;
    try {
      const { state } = await this.#store.load(workspace, workspaceId);
      twinOf = state.status === 'created' ? state.twinOf : null;
    } catch (error) {
      if (isInfrastructureFault(error)) throw error;
      // This release cannot read the workspace, which counts as a customer of its own and delays no other.
      return workspaceId;
    }
    const customer = twinOf ?? workspaceId;
    // A twin stays a twin for ever, so a cached customer stays valid.
    if (this.#known.size >= maxKnown) this.#known.clear();
    this.#known.set(workspaceId, customer);
    return customer;
  }
}
