/**
 * A bounded cache with a share for each workspace: what is over the bound goes, the least recently used first, from the
 * workspace that holds the most. One tenant never evicts the others.
 */

interface Entry {
  readonly workspaceId: string;
  /** In the unit of the bound. */
  readonly size: number;
}

export class WorkspaceCache<Value extends Entry> {
  /** The least recently used first. */
  readonly #entries = new Map<string, Value>();
  readonly #max: number;
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Without noting a use. */
  peek(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#size += value.size;
    while (this.#size > this.#max) this.#evict();
  }

  delete(key: string): void {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    this.#entries.delete(key);
  }

  #evict(): void {
    const held = new Map<string, number>();
    for (const { workspaceId, size } of this.#entries.values()) {
      held.set(workspaceId, (held.get(workspaceId) ?? 0) + size);
    }
    const [largest] = [...held].reduce((max, one) => (one[1] > max[1] ? one : max), ['', -1]);
    const [oldest] = [...this.#entries].find(([, { workspaceId }]) => workspaceId === largest) ?? [''];
    this.delete(oldest);
  }
}
