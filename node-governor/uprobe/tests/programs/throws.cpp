// SPDX-License-Identifier: Apache-2.0
// Does what it reads, a line each, and says so: return COUNT, throw COUNT.
#include <cstdio>
#include <stdexcept>

namespace search {
// Of more than one way out, and a part that hardly ever runs.
__attribute__((noinline)) int evaluate(int query)
{
	volatile int seen = query;
	if (__builtin_expect(query < 0, 0))
		throw std::runtime_error("no such query");
	if (query > 10)
		return seen * 2;
	return seen;
}
} // namespace search

int main()
{
	char line[80];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int count, thrown = 0;
		if (sscanf(line, "return %d", &count) == 1)
			for (int i = 0; i < count; i++)
				search::evaluate(i);
		else if (sscanf(line, "throw %d", &count) == 1)
			for (int i = 0; i < count; i++)
				try {
					search::evaluate(-1);
				} catch (std::runtime_error &) {
					thrown++;
				}
		puts("done");
		fflush(stdout);
	}
}
