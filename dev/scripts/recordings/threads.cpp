// Counts the words of a text in four threads: one reads lines, which the others consume and free.
#include <condition_variable>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

std::mutex lock;
std::condition_variable arrived;
std::deque<std::string> lines;
bool done = false;

std::map<std::string, unsigned> count_words(const std::string &line) {
    std::map<std::string, unsigned> words;
    std::istringstream in(line);
    for (std::string word; in >> word;) words[word]++;
    return words;
}

void work(std::map<std::string, unsigned> &all) {
    for (;;) {
        std::unique_lock<std::mutex> held(lock);
        arrived.wait(held, [] { return done || !lines.empty(); });
        if (lines.empty()) return;
        std::string line = std::move(lines.front());
        lines.pop_front();
        held.unlock();
        for (auto &word : count_words(line)) all[word.first] += word.second;
    }
}

int main(int, char **argv) {
    std::vector<std::map<std::string, unsigned>> counts(3);
    std::vector<std::thread> workers;
    for (auto &count : counts) workers.emplace_back(work, std::ref(count));
    std::ifstream in(argv[1]);
    for (std::string line; std::getline(in, line);) {
        std::lock_guard<std::mutex> held(lock);
        lines.push_back(line);
        arrived.notify_one();
    }
    {
        std::lock_guard<std::mutex> held(lock);
        done = true;
    }
    arrived.notify_all();
    for (auto &worker : workers) worker.join();
    std::size_t words = 0;
    for (auto &count : counts) words += count.size();
    std::cout << words << '\n';
}
