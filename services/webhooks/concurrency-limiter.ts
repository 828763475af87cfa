import { busy, type Count, Credit, half, type Limits, PendingCounts, zeroCount } from './counts.ts';

/**
 * Limits the requests under way and decides which one begins next. Each endpoint has two lines: first tries wait in the
 * first, retries and replays in the second. Tenants take turns, and so do the hosts of a tenant and the endpoints of a
 * host. The second line may use at most half of every limit, so first tries always find a slot. One slot of each
 * endpoint goes to its second line whenever a request waits there, so the second line moves too.
 *
 * A host is counted for each tenant: two tenants who name the same host do not affect each other. The endpoints of a
 * tenant on one host share its limit. An endpoint whose last request failed needs the host's credit for each further
 * request, so that a tenant cannot send more to a stranger by registering the address more often.
 */

export interface Waiting {
  readonly endpointId: string;
  readonly workspaceId: string;
  /** 0: a first try. */
  readonly queueLane: number;
  readonly body: { readonly length: number };
}

/**
 * Lines may hold the requests that an endpoint answers in this time, milliseconds: so the next one is ready at once.
 */
const aheadMs = 100;
/** Most requests in the lines, as a multiple of the endpoint's limit. */
const maxAhead = 4;
/** Bytes of waiting and running requests above which nothing more is claimed. */
const maxBytes = 64 * 1_024 * 1_024;
/** Idle tenants, and idle endpoints of one tenant, whose pace and credit are kept. */
const maxTenants = 1_000;
const maxOfTenant = 256;

export interface Room {
  readonly all: number;
  /** Of those, retries and replays. */
  readonly later: number;
  /** Its last answer was a success. */
  readonly proven: boolean;
}

const none: Room = { all: 0, later: 0, proven: false };

interface EndpointQueue<Item> extends Count {
  readonly first: Item[];
  readonly second: Item[];
  host: Host<Item>;
  /** Its last answer was a success. */
  proven: boolean;
  /** Mean time of its answers, milliseconds; null before the first one. */
  paceMs: number | null;
}

interface Host<Item> extends Count {
  readonly name: string;
  readonly credit: Credit;
  /** Requests waiting or reserved at endpoints that are not proven. */
  owed: number;
  queues: number;
  /** Endpoints with waiting requests, in the order in which they are served. */
  readonly rotation: Map<string, EndpointQueue<Item>>;
}

interface Tenant<Item> extends Count {
  readonly queues: Map<string, EndpointQueue<Item>>;
  readonly hosts: Map<string, Host<Item>>;
  /** Hosts with waiting requests, in the order in which they are served. */
  readonly rotation: Map<string, Host<Item>>;
}

export class ConcurrencyLimiter<Item extends Waiting> {
  readonly #limits: Limits;
  readonly #hostOf: (endpointId: string) => string;
  readonly #tenants = new Map<string, Tenant<Item>>();
  /** Tenants with waiting requests, in the order in which they are served. */
  readonly #rotation = new Map<string, Tenant<Item>>();
  readonly #all = zeroCount();
  #bytes = 0;

  /** @param hostOf the present host of an endpoint */
  constructor(limits: Limits, hostOf: (endpointId: string) => string) {
    this.#limits = limits;
    this.#hostOf = hostOf;
  }

  get underWay(): number {
    return this.#all.underWay;
  }

  get waiting(): number {
    return this.#all.waiting;
  }

  /**
   * How many more requests this endpoint may get now.
   * @param pending requests that are about to be claimed for other endpoints
   */
  room(endpointId: string, workspaceId: string, pending = new PendingCounts()): Room {
    if (this.#bytes > maxBytes) return none;
    const tenant = this.#tenantOf(workspaceId);
    const queue = this.#queueOf(tenant, endpointId);
    const { host } = queue;
    const { endpoint, tenant: perTenant, total } = this.#limits;
    const ahead = queue.proven ? aheadOf(queue.paceMs, endpoint) : 0;
    const all = Math.min(
      endpoint - busy(queue),
      this.#limits.host - busy(host) - pending.of(host),
      perTenant - busy(tenant) - pending.of(tenant),
      total - busy(this.#all) - pending.of(this.#all),
    );
    const later = Math.min(
      half(endpoint) - laterOf(queue),
      half(this.#limits.host) - laterOf(host),
      half(perTenant) - laterOf(tenant),
      half(total) - laterOf(this.#all),
    );
    const credit = queue.proven ? Number.POSITIVE_INFINITY : host.credit.now - host.owed - pending.of(host);
    const allRoom = Math.max(0, Math.min(all + ahead, credit));
    // A claim for few requests is not worth its cost while the line has work, or while credit grows one by one.
    const isHandful = allRoom < (endpoint + ahead) / 4 && queue.waiting > 0;
    if (isHandful || credit < this.#limits.host / 8) return none;
    return { all: allRoom, later: Math.min(allRoom, Math.max(0, later + (ahead >> 1))), proven: queue.proven };
  }

  hold(pending: PendingCounts, endpointId: string, workspaceId: string, count: number): void {
    const tenant = this.#tenantOf(workspaceId);
    for (const one of [this.#queueOf(tenant, endpointId).host, tenant, this.#all]) pending.add(one, count);
  }

  /** Keeps room for up to `wanted` first tries that come later. */
  reserve(endpointId: string, workspaceId: string, wanted: number): number {
    const count = Math.min(wanted, this.room(endpointId, workspaceId).all);
    if (count > 0) this.#reserved(endpointId, workspaceId, count);
    return count;
  }

  unreserve(endpointId: string, workspaceId: string, count: number): void {
    this.#reserved(endpointId, workspaceId, -count);
    this.#forget(endpointId, workspaceId);
  }

  /** Puts the request into its line; `start` begins it. */
  add(item: Item): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const queue = this.#queueOf(tenant, item.endpointId);
    (item.queueLane === 0 ? queue.first : queue.second).push(item);
    this.#waits(item, 1);
    this.#bytes += item.body.length;
    queue.host.rotation.set(item.endpointId, queue);
    tenant.rotation.set(queue.host.name, queue.host);
    this.#rotation.set(item.workspaceId, tenant);
  }

  /**
   * Begins every request that may begin, tenants in turn. A request for which `begin` answers false takes no slot.
   */
  start(begin: (item: Item) => boolean): void {
    // A tenant that had its turn goes behind the others, and this loop comes to it again.
    for (const [workspaceId, tenant] of this.#rotation) {
      if (this.#all.underWay >= this.#limits.total) return;
      const item = this.#next(tenant);
      if (item === null) continue;
      this.#rotation.delete(workspaceId);
      if (tenant.waiting > 0) this.#rotation.set(workspaceId, tenant);
      this.#moved(item, 1);
      if (!begin(item)) this.ended(item, null, null);
    }
  }

  /**
   * Call it when a request that had begun is over.
   * @param tookMs null when the time does not show the endpoint's pace
   * @param taken whether the receiver accepted it; null when nothing was sent
   */
  ended(item: Item, tookMs: number | null, taken: boolean | null): void {
    this.#moved(item, -1);
    this.#bytes -= item.body.length;
    const queue = this.#tenants.get(item.workspaceId)?.queues.get(item.endpointId);
    if (queue !== undefined) {
      if (tookMs !== null) queue.paceMs = queue.paceMs === null ? tookMs : queue.paceMs * 0.9 + tookMs * 0.1;
      if (taken !== false && !(taken === null && queue.proven)) queue.host.credit.give();
      if (taken !== null && taken !== queue.proven) {
        queue.proven = taken;
        queue.host.owed += (taken ? -1 : 1) * (queue.waiting + queue.reserved);
      }
    }
    this.#forget(item.endpointId, item.workspaceId);
  }

  /** Removes and returns the waiting requests that must not stay or have no credit. */
  withdraw(stays: (item: Item) => boolean): readonly Item[] {
    const out: Item[] = [];
    for (const [workspaceId, tenant] of this.#rotation) {
      for (const [name, host] of tenant.rotation) {
        let credit = host.credit.now;
        for (const [endpointId, queue] of host.rotation) {
          for (const line of [queue.first, queue.second]) {
            const kept = line.filter((item) => (stays(item) && (queue.proven || credit-- > 0)) || !out.push(item));
            line.splice(0, line.length, ...kept);
          }
          if (queue.first.length + queue.second.length === 0) host.rotation.delete(endpointId);
        }
        if (host.rotation.size === 0) tenant.rotation.delete(name);
      }
      if (tenant.rotation.size === 0) this.#rotation.delete(workspaceId);
    }
    for (const item of out) {
      this.#waits(item, -1);
      this.#bytes -= item.body.length;
      this.#forget(item.endpointId, item.workspaceId);
    }
    return out;
  }

  #next(tenant: Tenant<Item>): Item | null {
    const { host: perHost, tenant: perTenant, total } = this.#limits;
    if (tenant.underWay >= perTenant) return null;
    const mayBeLater = tenant.later < half(perTenant) && this.#all.later < half(total);
    for (const [name, host] of tenant.rotation) {
      if (host.underWay >= perHost) continue;
      const item = this.#nextOf(host, mayBeLater && host.later < half(perHost));
      if (item === null) continue;
      tenant.rotation.delete(name);
      if (host.rotation.size > 0) tenant.rotation.set(name, host);
      return item;
    }
    return null;
  }

  #nextOf(host: Host<Item>, mayBeLater: boolean): Item | null {
    const { endpoint } = this.#limits;
    for (const [endpointId, queue] of host.rotation) {
      if (queue.underWay >= endpoint || (!queue.proven && host.credit.now < 1)) continue;
      const second = queue.second.length > 0 && mayBeLater && queue.later < half(endpoint);
      const item =
        second && (queue.first.length === 0 || queue.later === 0) ? queue.second.shift() : queue.first.shift();
      if (item === undefined) continue;
      host.rotation.delete(endpointId);
      if (queue.first.length + queue.second.length > 0) host.rotation.set(endpointId, queue);
      this.#waits(item, -1);
      if (!queue.proven) host.credit.take();
      return item;
    }
    return null;
  }

  #waits(item: Item, by: 1 | -1): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const queue = this.#known(tenant, item.endpointId);
    for (const count of [queue, queue.host, tenant, this.#all]) {
      count.waiting += by;
      if (item.queueLane !== 0) count.waitingLater += by;
    }
    if (!queue.proven) queue.host.owed += by;
  }

  #moved(item: Item, by: 1 | -1): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const queue = this.#known(tenant, item.endpointId);
    for (const count of [queue, queue.host, tenant, this.#all]) {
      count.underWay += by;
      if (item.queueLane !== 0) count.later += by;
    }
  }

  #reserved(endpointId: string, workspaceId: string, by: number): void {
    const tenant = this.#tenantOf(workspaceId);
    const queue = this.#known(tenant, endpointId);
    for (const count of [queue, queue.host, tenant, this.#all]) count.reserved += by;
    if (!queue.proven) queue.host.owed += by;
  }

  #tenantOf(workspaceId: string): Tenant<Item> {
    const known = this.#tenants.get(workspaceId);
    if (known !== undefined) return known;
    const tenant: Tenant<Item> = { ...zeroCount(), queues: new Map(), hosts: new Map(), rotation: new Map() };
    this.#tenants.set(workspaceId, tenant);
    return tenant;
  }

  #hostNamed(tenant: Tenant<Item>, name: string): Host<Item> {
    const known = tenant.hosts.get(name);
    if (known !== undefined) return known;
    const { host: burst, failuresPerSecond } = this.#limits;
    const credit = new Credit(burst, failuresPerSecond);
    const host: Host<Item> = { ...zeroCount(), name, credit, owed: 0, queues: 0, rotation: new Map() };
    // Drops former hosts with full credit, so that an endpoint that moves again and again fills no memory.
    if (tenant.hosts.size >= maxOfTenant) {
      for (const [other, { queues, credit: left }] of tenant.hosts) {
        if (queues === 0 && left.isFull) tenant.hosts.delete(other);
      }
    }
    tenant.hosts.set(name, host);
    return host;
  }

  /** The queue with its present counts: running requests of the endpoint may still count at its former host. */
  #known(tenant: Tenant<Item>, endpointId: string): EndpointQueue<Item> {
    return tenant.queues.get(endpointId) ?? this.#queueOf(tenant, endpointId);
  }

  #queueOf(tenant: Tenant<Item>, endpointId: string): EndpointQueue<Item> {
    const known = tenant.queues.get(endpointId);
    const name = this.#hostOf(endpointId);
    if (known?.host.name === name) return known;
    const host = this.#hostNamed(tenant, name);
    if (known === undefined) {
      const queue: EndpointQueue<Item> = { ...zeroCount(), first: [], second: [], host, proven: false, paceMs: null };
      host.queues += 1;
      tenant.queues.set(endpointId, queue);
      return queue;
    }
    this.#move(tenant, endpointId, known, host);
    return known;
  }

  /** Moves an endpoint to its new host, where it is not proven. All its requests count there, also running ones. */
  #move(tenant: Tenant<Item>, endpointId: string, queue: EndpointQueue<Item>, to: Host<Item>): void {
    const from = queue.host;
    for (const name of ['underWay', 'later', 'waiting', 'waitingLater', 'reserved'] as const) {
      from[name] -= queue[name];
      to[name] += queue[name];
    }
    if (!queue.proven) from.owed -= queue.waiting + queue.reserved;
    to.owed += queue.waiting + queue.reserved;
    from.queues -= 1;
    to.queues += 1;
    Object.assign(queue, { host: to, proven: false });
    if (from.rotation.delete(endpointId)) {
      to.rotation.set(endpointId, queue);
      tenant.rotation.set(to.name, to);
    }
    if (from.rotation.size === 0) tenant.rotation.delete(from.name);
  }

  /** Drops an idle endpoint when there are many; until then its pace is kept. */
  #forget(endpointId: string, workspaceId: string): void {
    const tenant = this.#tenants.get(workspaceId);
    if (tenant === undefined || (this.#tenants.size < maxTenants && tenant.queues.size < maxOfTenant)) return;
    const queue = tenant.queues.get(endpointId);
    if (queue !== undefined && busy(queue) === 0) {
      tenant.queues.delete(endpointId);
      queue.host.queues -= 1;
      if (queue.host.queues === 0 && queue.host.credit.isFull) tenant.hosts.delete(queue.host.name);
    }
    if (tenant.queues.size + tenant.hosts.size === 0) this.#tenants.delete(workspaceId);
  }
}

const laterOf = ({ later, waitingLater }: Count): number => later + waitingLater;

const aheadOf = (paceMs: number | null, limit: number): number =>
  paceMs === null ? 0 : Math.min(maxAhead * limit, Math.floor((limit * aheadMs) / Math.max(1, paceMs)));
