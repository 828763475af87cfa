import { type CounterName, counters } from '#schemas/insights.ts';

/** What `presentFigures` of the domain says of counters, for stored rows. */
const present: Readonly<Record<string, string>> = {
  follows: "if(platform = 'x', coalesce(follows, subscribers_gained), follows)",
  subscribers_gained: "if(platform = 'x', null, subscribers_gained)",
  subscribers_lost: "if(platform = 'x', null, subscribers_lost)",
  link_clicks: "if(platform in ('facebook', 'linkedin', 'pinterest'), null, link_clicks)",
};

/** The expression of a counter's column in a row that has `platform`. */
export const presentColumn = (column: string): string => present[column] ?? column;

const bitOf = (counter: CounterName): number => counters.indexOf(counter);

/** The expression of `fetched` in such a row: a counter that has another place since was fetched there too. */
export const presentFetched = `if(platform = 'x' and bitTest(fetched, ${bitOf('subscribersGained')}),
      bitOr(fetched, ${2 ** bitOf('follows')}), fetched)`;
