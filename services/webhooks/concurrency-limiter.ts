import { busy, type Count, Credit, half, type Limits, nobody, PendingCounts } from './counts.ts';

/**
 * How many requests may be under way, and whose turn it is. A first try that may not begin yet waits in a line of its
 * endpoint, what is tried again or replayed in another; tenants take turns, so do the hosts of one tenant and the
 * endpoints of one host. Of every limit at most half is for the second line, so first tries always find a place; and of an
 * endpoint's places one is the second line's as soon as it waits, so that it moves on too.
 *
 * A host is one of a tenant: two tenants who name the same one do not meet. What a tenant's endpoints may send there they
 * share; an endpoint that does not take what it is sent draws on the host's credit for each further request, so that
 * nobody sends more to a stranger by registering him more often.
 */

export interface Waiting {
  readonly endpointId: string;
  readonly workspaceId: string;
  /** 0: a first try. */
  readonly queueLane: number;
  readonly body: { readonly length: number };
}

/** Lines may hold what an endpoint will have answered within this, milliseconds: so the next is there when one ends. */
const aheadMs = 100;
/** And at most so many times what may be under way. */
const maxAhead = 4;
/** Bytes that wait and are under way, above which nothing more is claimed. */
const maxBytes = 64 * 1_024 * 1_024;
/** What is remembered of those who have nothing to send: pace and credit. */
const maxTenants = 1_000;
const maxOfTenant = 256;

export interface Room {
  readonly all: number;
  /** Of those, retries and replays. */
  readonly later: number;
  /** It took what it was sent last. */
  readonly proven: boolean;
}

const none: Room = { all: 0, later: 0, proven: false };

interface Slot<Item> extends Count {
  readonly first: Item[];
  readonly second: Item[];
  host: Host<Item>;
  /** The last answer took what was sent. */
  proven: boolean;
  /** Mean time of its answers, milliseconds; null before the first one. */
  paceMs: number | null;
}

interface Host<Item> extends Count {
  readonly name: string;
  readonly credit: Credit;
  /** Waiting or reserved at endpoints that are not proven. */
  owed: number;
  seats: number;
  /** Seats at which something waits, in the order of their turns. */
  readonly turns: Map<string, Slot<Item>>;
}

interface Tenant<Item> extends Count {
  readonly seats: Map<string, Slot<Item>>;
  readonly hosts: Map<string, Host<Item>>;
  /** Hosts for which something waits, in the order of their turns. */
  readonly turns: Map<string, Host<Item>>;
}

export class ConcurrencyLimiter<Item extends Waiting> {
  readonly #limits: Limits;
  readonly #hostOf: (endpointId: string) => string;
  readonly #tenants = new Map<string, Tenant<Item>>();
  /** Tenants of whom something waits, in the order of their turns. */
  readonly #turns = new Map<string, Tenant<Item>>();
  readonly #all = nobody();
  #bytes = 0;

  /** @param hostOf where an endpoint is now */
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
   * How many more may be taken in for this endpoint now: at all, and of retries and replays.
   * @param held what is about to be taken in for others
   */
  room(endpointId: string, workspaceId: string, held = new PendingCounts()): Room {
    if (this.#bytes > maxBytes) return none;
    const tenant = this.#tenantOf(workspaceId);
    const seat = this.#seatOf(tenant, endpointId);
    const { host } = seat;
    const { endpoint, tenant: perTenant, total } = this.#limits;
    const ahead = seat.proven ? aheadOf(seat.paceMs, endpoint) : 0;
    const all = Math.min(
      endpoint - busy(seat),
      this.#limits.host - busy(host) - held.of(host),
      perTenant - busy(tenant) - held.of(tenant),
      total - busy(this.#all) - held.of(this.#all),
    );
    const later = Math.min(
      half(endpoint) - laterOf(seat),
      half(this.#limits.host) - laterOf(host),
      half(perTenant) - laterOf(tenant),
      half(total) - laterOf(this.#all),
    );
    const credit = seat.proven ? Number.POSITIVE_INFINITY : host.credit.now - host.owed - held.of(host);
    const allRoom = Math.max(0, Math.min(all + ahead, credit));
    // A handful is not worth a claim: while there is still work in the line, or while credit comes one by one.
    const isHandful = allRoom < (endpoint + ahead) / 4 && seat.waiting > 0;
    if (isHandful || credit < this.#limits.host / 8) return none;
    return { all: allRoom, later: Math.min(allRoom, Math.max(0, later + (ahead >> 1))), proven: seat.proven };
  }

  hold(held: PendingCounts, endpointId: string, workspaceId: string, count: number): void {
    const tenant = this.#tenantOf(workspaceId);
    for (const one of [this.#seatOf(tenant, endpointId).host, tenant, this.#all]) held.add(one, count);
  }

  /** Keeps up to `wanted` of the room for first tries that come later. */
  reserve(endpointId: string, workspaceId: string, wanted: number): number {
    const count = Math.min(wanted, this.room(endpointId, workspaceId).all);
    if (count > 0) this.#reserved(endpointId, workspaceId, count);
    return count;
  }

  unreserve(endpointId: string, workspaceId: string, count: number): void {
    this.#reserved(endpointId, workspaceId, -count);
    this.#forget(endpointId, workspaceId);
  }

  /** Into the line; `start` lets go what may. */
  add(item: Item): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const seat = this.#seatOf(tenant, item.endpointId);
    (item.queueLane === 0 ? seat.first : seat.second).push(item);
    this.#waits(item, 1);
    this.#bytes += item.body.length;
    seat.host.turns.set(item.endpointId, seat);
    tenant.turns.set(seat.host.name, seat.host);
    this.#turns.set(item.workspaceId, tenant);
  }

  /**
   * Lets go whatever may, tenants in turn. `begin` says whether it really began; what did not takes no place.
   */
  start(begin: (item: Item) => boolean): void {
    // A tenant that had its turn is put behind the others, where this loop comes to it once more.
    for (const [workspaceId, tenant] of this.#turns) {
      if (this.#all.underWay >= this.#limits.total) return;
      const item = this.#next(tenant);
      if (item === null) continue;
      this.#turns.delete(workspaceId);
      if (tenant.waiting > 0) this.#turns.set(workspaceId, tenant);
      this.#moved(item, 1);
      if (!begin(item)) this.ended(item, null, null);
    }
  }

  /**
   * One that had begun is over.
   * @param tookMs null when it tells nothing about the endpoint's pace
   * @param taken whether the receiver took it; null when nobody was asked
   */
  ended(item: Item, tookMs: number | null, taken: boolean | null): void {
    this.#moved(item, -1);
    this.#bytes -= item.body.length;
    const seat = this.#tenants.get(item.workspaceId)?.seats.get(item.endpointId);
    if (seat !== undefined) {
      if (tookMs !== null) seat.paceMs = seat.paceMs === null ? tookMs : seat.paceMs * 0.9 + tookMs * 0.1;
      if (taken !== false && !(taken === null && seat.proven)) seat.host.credit.give();
      if (taken !== null && taken !== seat.proven) {
        seat.proven = taken;
        seat.host.owed += (taken ? -1 : 1) * (seat.waiting + seat.reserved);
      }
    }
    this.#forget(item.endpointId, item.workspaceId);
  }

  /** Takes out of the lines, and returns, what is not to stay, or has no credit. */
  withdraw(stays: (item: Item) => boolean): readonly Item[] {
    const out: Item[] = [];
    for (const [workspaceId, tenant] of this.#turns) {
      for (const [name, host] of tenant.turns) {
        let credit = host.credit.now;
        for (const [endpointId, seat] of host.turns) {
          for (const line of [seat.first, seat.second]) {
            const kept = line.filter((item) => (stays(item) && (seat.proven || credit-- > 0)) || !out.push(item));
            line.splice(0, line.length, ...kept);
          }
          if (seat.first.length + seat.second.length === 0) host.turns.delete(endpointId);
        }
        if (host.turns.size === 0) tenant.turns.delete(name);
      }
      if (tenant.turns.size === 0) this.#turns.delete(workspaceId);
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
    for (const [name, host] of tenant.turns) {
      if (host.underWay >= perHost) continue;
      const item = this.#nextOf(host, mayBeLater && host.later < half(perHost));
      if (item === null) continue;
      tenant.turns.delete(name);
      if (host.turns.size > 0) tenant.turns.set(name, host);
      return item;
    }
    return null;
  }

  #nextOf(host: Host<Item>, mayBeLater: boolean): Item | null {
    const { endpoint } = this.#limits;
    for (const [endpointId, seat] of host.turns) {
      if (seat.underWay >= endpoint || (!seat.proven && host.credit.now < 1)) continue;
      const second = seat.second.length > 0 && mayBeLater && seat.later < half(endpoint);
      const item = second && (seat.first.length === 0 || seat.later === 0) ? seat.second.shift() : seat.first.shift();
      if (item === undefined) continue;
      host.turns.delete(endpointId);
      if (seat.first.length + seat.second.length > 0) host.turns.set(endpointId, seat);
      this.#waits(item, -1);
      if (!seat.proven) host.credit.take();
      return item;
    }
    return null;
  }

  #waits(item: Item, by: 1 | -1): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const seat = this.#known(tenant, item.endpointId);
    for (const count of [seat, seat.host, tenant, this.#all]) {
      count.waiting += by;
      if (item.queueLane !== 0) count.waitingLater += by;
    }
    if (!seat.proven) seat.host.owed += by;
  }

  #moved(item: Item, by: 1 | -1): void {
    const tenant = this.#tenantOf(item.workspaceId);
    const seat = this.#known(tenant, item.endpointId);
    for (const count of [seat, seat.host, tenant, this.#all]) {
      count.underWay += by;
      if (item.queueLane !== 0) count.later += by;
    }
  }

  #reserved(endpointId: string, workspaceId: string, by: number): void {
    const tenant = this.#tenantOf(workspaceId);
    const seat = this.#known(tenant, endpointId);
    for (const count of [seat, seat.host, tenant, this.#all]) count.reserved += by;
    if (!seat.proven) seat.host.owed += by;
  }

  #tenantOf(workspaceId: string): Tenant<Item> {
    const known = this.#tenants.get(workspaceId);
    if (known !== undefined) return known;
    const tenant: Tenant<Item> = { ...nobody(), seats: new Map(), hosts: new Map(), turns: new Map() };
    this.#tenants.set(workspaceId, tenant);
    return tenant;
  }

  #hostNamed(tenant: Tenant<Item>, name: string): Host<Item> {
    const known = tenant.hosts.get(name);
    if (known !== undefined) return known;
    const { host: burst, failuresPerSecond } = this.#limits;
    const credit = new Credit(burst, failuresPerSecond);
    const host: Host<Item> = { ...nobody(), name, credit, owed: 0, seats: 0, turns: new Map() };
    // An endpoint that moves on again and again leaves no more behind than what is still owed.
    if (tenant.hosts.size >= maxOfTenant) {
      for (const [other, { seats, credit: left }] of tenant.hosts) {
        if (seats === 0 && left.isFull) tenant.hosts.delete(other);
      }
    }
    tenant.hosts.set(name, host);
    return host;
  }

  /** As it is counted now, also while what it has under way goes to where it was before. */
  #known(tenant: Tenant<Item>, endpointId: string): Slot<Item> {
    return tenant.seats.get(endpointId) ?? this.#seatOf(tenant, endpointId);
  }

  #seatOf(tenant: Tenant<Item>, endpointId: string): Slot<Item> {
    const known = tenant.seats.get(endpointId);
    const name = this.#hostOf(endpointId);
    if (known?.host.name === name) return known;
    const host = this.#hostNamed(tenant, name);
    if (known === undefined) {
      const seat: Slot<Item> = { ...nobody(), first: [], second: [], host, proven: false, paceMs: null };
      host.seats += 1;
      tenant.seats.set(endpointId, seat);
      return seat;
    }
    this.#move(tenant, endpointId, known, host);
    return known;
  }

  /** It is elsewhere now, where it has proven nothing: all that it has, also under way, counts there. */
  #move(tenant: Tenant<Item>, endpointId: string, seat: Slot<Item>, to: Host<Item>): void {
    const from = seat.host;
    for (const name of ['underWay', 'later', 'waiting', 'waitingLater', 'reserved'] as const) {
      from[name] -= seat[name];
      to[name] += seat[name];
    }
    if (!seat.proven) from.owed -= seat.waiting + seat.reserved;
    to.owed += seat.waiting + seat.reserved;
    from.seats -= 1;
    to.seats += 1;
    Object.assign(seat, { host: to, proven: false });
    if (from.turns.delete(endpointId)) {
      to.turns.set(endpointId, seat);
      tenant.turns.set(to.name, to);
    }
    if (from.turns.size === 0) tenant.turns.delete(from.name);
  }

  /** Seats are kept for their pace until there are many. */
  #forget(endpointId: string, workspaceId: string): void {
    const tenant = this.#tenants.get(workspaceId);
    if (tenant === undefined || (this.#tenants.size < maxTenants && tenant.seats.size < maxOfTenant)) return;
    const seat = tenant.seats.get(endpointId);
    if (seat !== undefined && busy(seat) === 0) {
      tenant.seats.delete(endpointId);
      seat.host.seats -= 1;
      if (seat.host.seats === 0 && seat.host.credit.isFull) tenant.hosts.delete(seat.host.name);
    }
    if (tenant.seats.size + tenant.hosts.size === 0) this.#tenants.delete(workspaceId);
  }
}

const laterOf = ({ later, waitingLater }: Count): number => later + waitingLater;

const aheadOf = (paceMs: number | null, limit: number): number =>
  paceMs === null ? 0 : Math.min(maxAhead * limit, Math.floor((limit * aheadMs) / Math.max(1, paceMs)));
