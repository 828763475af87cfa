import { workspace } from '#domain/workspace.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';

/** Workspaces remembered. */
const maxKnown = 10_000;

/** The customer whose share the work of a workspace counts against: for a sandbox twin its live workspace. */
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
      // This release cannot read the workspace: it has a share of its own meanwhile and holds up no other.
      return workspaceId;
    }
    const customer = twinOf ?? workspaceId;
    // A twin stays a twin for ever.
    if (this.#known.size >= maxKnown) this.#known.clear();
    this.#known.set(workspaceId, customer);
    return customer;
  }
}
