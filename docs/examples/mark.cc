/* SPDX-License-Identifier: MIT */

/*
 * The same in C++: exceptions end a scope like everything else, and the object of a scope can live
 * as long as something else.
 *
 * c++ $(pkg-config --cflags tlob-mark) -O2 -o mark mark.cc
 * usage: mark [REQUESTS]
 */

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <thread>

#include <tlob-mark.h>

namespace service {

TLOB_MARK(batch);
TLOB_MARK(request);

void handle_request(unsigned number) {
        TLOB_SCOPE(request);

        std::this_thread::sleep_for(std::chrono::milliseconds(number % 10 == 0 ? 50 : 1));
        if (number % 10 == 0)
                throw std::runtime_error("it was a long one");
}

/* Its windows last from one flush to the next. */
class Batch {
      public:
        void flush() {
                window_.reset();
                window_.emplace();
        }

      private:
        std::optional<tlob_scope_batch> window_;
};

} // namespace service

int main(int argc, char *argv[]) {
        const unsigned long n = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100;
        service::Batch batch;

        for (unsigned i = 1; i <= n; i++) {
                if (i % 5 == 1)
                        batch.flush();
                try {
                        service::handle_request(i);
                } catch (const std::runtime_error &error) {
                        std::cout << "Request " << i << ": " << error.what() << '\n';
                }
        }
        return 0;
}
